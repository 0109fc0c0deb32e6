/** Batches of a data set, in an order that a seed determines. */
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
  /** How many items a batch has. Default 1. */
  batchSize?: number | undefined;
  /** Whether each epoch has an order of its own. Default false. */
  shuffle?: boolean | undefined;
  /** What the orders, and the seeds of items, depend on. Default 0. */
  seed?: number | bigint | undefined;
  /** Whether a last batch of fewer items is left out. Default false. */
  dropLast?: boolean | undefined;
  /** How many batches are made ahead while one is used. Default 1. */
  prefetch?: number | undefined;
  /** Makes a batch of items. Default {@link collate}. */
  collate?: ((items: Item[]) => Batch | Promise<Batch>) | undefined;
  /** The indices of an epoch in their order, such as of a part, or drawn by weights; not together with `shuffle`. */
  sampler?: ((epoch: number, seed: bigint) => Iterable<number>) | undefined;
}

/** Where a loader is: with the same data and options it determines all further batches. JSON, but for the seed. */
export interface LoaderState {
  /** How many epochs are complete. */
  readonly epoch: number;
  /** How many batches of this epoch were given. */
  readonly batch: number;
  /** The seed of the orders. */
  readonly seed: bigint;
}

const aLoadable: Kind<Dataset<unknown> | Iterable<unknown> | AsyncIterable<unknown>> = {
  expected: "a data set with length and get(index), or something to iterate over",
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
 * Batches of a data set, or of anything to iterate over. Each `for await` runs over one epoch, from where
 * {@link setState} left it, else from its start. The order depends on the seed and the number of the epoch alone, and
 * {@link getState} is exact to the batch: a training that is resumed sees what it would have seen.
 *
 * Items of a batch, and `prefetch` batches ahead, are asked for at once: where `get` returns promises, such as those of
 * {@link openWorkerDataset}, they are made at the same time.
 *
 * @example
 * const set = new data.TensorDataset(images, labels);
 * const loader = new data.DataLoader(set, { batchSize: 64, shuffle: true, seed: 1 });
 * for await (const [x, y] of loader) train(x, y);
 *
 * @throws {ArgumentError}
 */
export class DataLoader<Item, Batch = Collated<Item>> implements AsyncIterable<Batch> {
  readonly dataset: Dataset<Item> | Iterable<Item> | AsyncIterable<Item>;
  readonly batchSize: number;
  readonly #options: Omit<ReturnType<typeof loaderParameters>, "dataset">;
  #epoch = 0;
  #batch = 0;
  /** How often it was moved: a loop that goes on then does not know where it is. */
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
        "expected a data set with length and get(index) for shuffle and sampler, got something to iterate over",
      );
    this.dataset = dataset as Dataset<Item>;
    this.batchSize = options.batchSize;
    this.#options = options;
  }

  /** How many batches an epoch has; of what is iterated over, and with a sampler, undefined. */
  get length(): number | undefined {
    if (!isDataset(this.dataset) || this.#options.sampler) return undefined;
    const batches = this.dataset.length / this.batchSize;
    return this.#options.dropLast ? Math.floor(batches) : Math.ceil(batches);
  }

  /** How many epochs are complete. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Where it is: the next batch, if the loop goes on. */
  getState(): LoaderState {
    return { epoch: this.#epoch, batch: this.#batch, seed: this.#options.seed };
  }

  /** Goes on from a state of {@link getState} in the next loop. @throws {DataError} `otherData`, `invalidPosition` */
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

  /** The rest of this epoch. A loop that is left ends it too: the next one begins the next epoch. */
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
    const own = await Promise.all(items);
    return (await (this.#options.collate ?? collate)(own)) as Batch;
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

  /** What makes each item of an epoch. */
  async *#items(epoch: number): AsyncGenerator<() => Promise<Item>, void, undefined> {
    const { dataset } = this;
    const { seed } = this.#options;
    if (!isDataset(dataset)) {
      const items = dataset instanceof IterableDataset ? dataset.items(contextOf(seed, epoch, 0)) : dataset;
      for await (const item of items as AsyncIterable<Item>) yield () => Promise.resolve(item);
      return;
    }
    for (const index of this.#indices(dataset.length, epoch)) {
      if (!(Number.isSafeInteger(index) && index >= 0 && index < dataset.length))
        throw new DataError(
          "DataLoader",
          "outOfRange",
          `expected the sampler to give indices from 0 to below ${dataset.length}, got ${describeValue(index)}`,
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

/** A promise whose failure is noticed when it is awaited, and not before. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** The epoch, and a seed of 64 bits that no other item and epoch has but by chance. */
function contextOf(seed: bigint, epoch: number, index: number): ItemContext {
  const [low, high] = splitWords(BigInt(index));
  const [first, second] = philox([low, high, 0, 1], callKey(seed, BigInt(epoch)));
  return { epoch, seed: (BigInt(first!) << 32n) | BigInt(second!) };
}
