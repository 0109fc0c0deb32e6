/** Batches of a data set, in an order determined by a seed. */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DataError } from "../../core/errors.ts";
import { aFunction, aNumber, flag } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Given, type Kind, named, operand, optional, parameters, reading } from "../../core/parameters.ts";
import { seed as aSeed } from "../../random/kinds.ts";
import { permuted } from "../../random/permutation.ts";
import { callKey, philox, splitWords } from "../../random/philox.ts";
import { type Collated, collate } from "./collate.ts";
import { aDataset, type Dataset, type ItemContext, orderOf } from "./items.ts";
import { IterableDataset } from "./iterable.ts";

/** Options of {@link DataLoader}. */
export interface DataLoaderOptions<Item, Batch> {
  /** The number of items per batch. Default 1. */
  batchSize?: number | undefined;
  /** Shuffles the items in each epoch. Default false. */
  shuffle?: boolean | undefined;
  /** The seed of the order of items, and of the items' seeds. Default 0. */
  seed?: number | bigint | undefined;
  /** Drops the last batch if it is incomplete. Default false. */
  dropLast?: boolean | undefined;
  /** The number of batches to prepare ahead. Default 1. */
  prefetch?: number | undefined;
  /** Combines items into a batch. Default {@link collate}. */
  collate?: ((items: Item[]) => Batch | Promise<Batch>) | undefined;
  /** Returns the indices of an epoch in order, such as a subset or a weighted sample; not with `shuffle`. */
  sampler?: ((epoch: number, seed: bigint) => Iterable<number>) | undefined;
}

/**
 * The position of a loader. With the same data and options, it determines all further batches. JSON except the seed.
 */
export interface LoaderState {
  /** The number of complete epochs. */
  readonly epoch: number;
  /** The number of batches of this epoch that were returned. */
  readonly batch: number;
  /** The seed of the order. */
  readonly seed: bigint;
}

const aLoadable: Kind<Dataset<unknown> | Iterable<unknown> | AsyncIterable<unknown>> = {
  expected: "a data set with length and get(index), or an iterable",
  parse(value, operation, name) {
    if (typeof value !== "object" || value === null) return undefined;
    return aDataset.parse(value, operation, name) ?? (isIterable(value) ? value : undefined);
  },
};

const isIterable = (value: object): value is Iterable<unknown> | AsyncIterable<unknown> =>
  Symbol.iterator in value || Symbol.asyncIterator in value;

const size = aNumber({ ...count, expected: "a whole number of at least 1" });

const loaderParameters = parameters("DataLoader", {
  dataset: operand(aLoadable),
  batchSize: optional(size, 1),
  shuffle: optional(flag, false),
  seed: named(aSeed, 0n),
  dropLast: named(flag, false),
  prefetch: named(
    aNumber({ holds: (value) => Number.isSafeInteger(value) && value >= 0, expected: "a whole number of at least 0" }),
    1,
  ),
  collate: named(aFunction<(items: unknown[]) => unknown>()),
  sampler: named(aFunction<(epoch: number, seed: bigint) => Iterable<number>>()),
});

/**
 * Iterates over batches of a data set, or of any iterable. Each `for await` runs over one epoch, from the start or from
 * the position set by {@link setState}. The order depends only on the seed and the epoch. {@link getState} is exact to
 * the batch, so a resumed training run gets the same batches as an uninterrupted one.
 *
 * All items of a batch, and of `prefetch` batches ahead, are requested together. If `get` returns promises, as with
 * {@link openWorkerDataset}, they are computed concurrently.
 *
 * @example
 * const set = new data.TensorDataset(images, labels);
 * const loader = new data.DataLoader(set, { batchSize: 64, shuffle: true, seed: 1 });
 * for await (const [x, y] of loader) train(x, y);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export class DataLoader<Item, Batch = Collated<Item>> implements AsyncIterable<Batch> {
  readonly dataset: Dataset<Item> | Iterable<Item> | AsyncIterable<Item>;
  readonly batchSize: number;
  readonly #options: Omit<ReturnType<typeof loaderParameters>, "dataset">;
  #epoch = 0;
  #batch = 0;
  /** The number of `setState` calls; a loop that sees it change no longer updates the position. */
  #moves = 0;

  constructor(
    dataset: Dataset<Item> | Iterable<Item> | AsyncIterable<Item>,
    ...options: Given<DataLoaderOptions<Item, Batch>, ["batchSize", "shuffle"]>
  );
  constructor(...values: unknown[]) {
    const { dataset, ...options } = loaderParameters(values);
    if (options.shuffle && options.sampler)
      throw new ArgumentError("DataLoader", "invalidOption", "expected shuffle or a sampler, got both");
    if (!isDataset(dataset) && (options.shuffle || options.sampler))
      throw new ArgumentError(
        "DataLoader",
        "invalidOption",
        "expected a data set with length and get(index) for shuffle and sampler, got an iterable",
      );
    this.dataset = dataset as Dataset<Item>;
    this.batchSize = options.batchSize;
    this.#options = options;
  }

  /** The number of batches per epoch; undefined for iterables, and with a sampler. */
  get length(): number | undefined {
    if (!isDataset(this.dataset) || this.#options.sampler) return undefined;
    const batches = this.dataset.length / this.batchSize;
    return this.#options.dropLast ? Math.floor(batches) : Math.ceil(batches);
  }

  /** The number of complete epochs. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Returns the position of the next batch. */
  getState(): LoaderState {
    return { epoch: this.#epoch, batch: this.#batch, seed: this.#options.seed };
  }

  /** Continues from a state of {@link getState} in the next loop. @throws {DataError} `otherData`, `invalidPosition` */
  setState(state: LoaderState): this {
    const { epoch, batch, seed } = reading("DataLoader.setState", () => ({ ...state }));
    if (seed !== this.#options.seed)
      throw new DataError(
        "DataLoader.setState",
        "otherData",
        `expected a state with the seed ${this.#options.seed}, got ${describeValue(seed)}`,
      );
    const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
    if (!isCount(epoch) || !isCount(batch) || batch > (this.length ?? batch))
      throw new DataError(
        "DataLoader.setState",
        "invalidPosition",
        `there is no batch ${describeValue(batch)} of epoch ${describeValue(epoch)}`,
      );
    [this.#epoch, this.#batch] = [epoch, batch];
    this.#moves++;
    return this;
  }

  /**
   * Iterates over the rest of this epoch. Leaving the loop early ends the epoch too: the next loop starts the next one.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, void, undefined> {
    const [epoch, moves] = [this.#epoch, this.#moves];
    const ahead: Promise<Batch>[] = [];
    const batches = this.#batches(epoch, this.#batch);
    try {
      for (let isDone = false; ; ) {
        while (!isDone && ahead.length <= this.#options.prefetch) {
          const { value, done } = await batches.next();
          isDone = done === true;
          if (!isDone) ahead.push(handled(this.#make(value as Promise<Item>[])));
        }
        const next = ahead.shift();
        if (next === undefined) break;
        const batch = await next;
        if (this.#moves === moves) this.#batch++;
        yield batch;
      }
    } finally {
      await batches.return(undefined);
      if (this.#moves === moves) [this.#epoch, this.#batch] = [epoch + 1, 0];
    }
  }

  async #make(items: readonly Promise<Item>[]): Promise<Batch> {
    const loaded = await Promise.all(items);
    return (await (this.#options.collate ?? collate)(loaded)) as Batch;
  }

  /** The items of each batch of an epoch, from a batch on. */
  async *#batches(epoch: number, first: number): AsyncGenerator<Promise<Item>[], void, undefined> {
    let [items, seen]: [Promise<Item>[], number] = [[], 0];
    for await (const item of this.#items(epoch)) {
      const isSkipped = seen++ < first * this.batchSize;
      if (isSkipped) continue;
      items.push(handled(item()));
      if (items.length < this.batchSize) continue;
      yield items;
      items = [];
    }
    if (items.length > 0 && !this.#options.dropLast) yield items;
  }

  /** Yields, for each item of an epoch, a function that reads the item. */
  async *#items(epoch: number): AsyncGenerator<() => Promise<Item>, void, undefined> {
    const { dataset } = this;
    const { seed } = this.#options;
    if (!isDataset(dataset)) {
      const items = dataset instanceof IterableDataset ? dataset.items(contextOf(seed, epoch, 0)) : dataset;
      for await (const item of items) yield () => Promise.resolve(item);
      return;
    }
    for (const index of this.#indices(dataset.length, epoch)) {
      if (!(Number.isSafeInteger(index) && index >= 0 && index < dataset.length))
        throw new DataError(
          "DataLoader",
          "outOfRange",
          `expected the sampler to give indices of at least 0 and below ${dataset.length}, got ${describeValue(index)}`,
        );
      yield async () => dataset.get(index, contextOf(seed, epoch, index));
    }
  }

  *#indices(length: number, epoch: number): Generator<number, void, undefined> {
    const { sampler, shuffle, seed } = this.#options;
    if (sampler) return yield* sampler(epoch, seed);
    const order = shuffle ? orderOf(length, seed, epoch) : undefined;
    for (let at = 0; at < length; at++) yield order ? permuted(order, length, at) : at;
  }
}

const isDataset = <Item>(value: Dataset<Item> | Iterable<Item> | AsyncIterable<Item>): value is Dataset<Item> =>
  "length" in value && "get" in value && typeof value.get === "function";

/** A promise whose rejection is reported only when it is awaited, not as unhandled before that. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** The epoch, and a 64-bit seed that differs between items and epochs, except by chance. */
function contextOf(seed: bigint, epoch: number, index: number): ItemContext {
  const [low, high] = splitWords(BigInt(index));
  const [first, second] = philox([low, high, 0, 1], callKey(seed, BigInt(epoch)));
  return { epoch, seed: (BigInt(first) << 32n) | BigInt(second) };
}
