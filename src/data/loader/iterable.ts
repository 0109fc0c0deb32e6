/** Data sets without indices: streams, and files that are read once per epoch. */
import { lastElement } from "../../core/collections.ts";
import { describeValue } from "../../core/describe.ts";
import { DataError } from "../../core/errors.ts";
import { aFunction, aNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { callKey, philox, splitWords } from "../../random/philox.ts";
import type { ItemContext } from "./items.ts";

/** Options of {@link IterableDataset}. */
export interface IterableDatasetOptions {
  /**
   * The number of items in the shuffle buffer, from which each next item is drawn at random. 0 keeps the order. Default
   * 0.
   */
  shuffleBuffer?: number | undefined;
}

type Items<Item> = Iterable<Item> | AsyncIterable<Item>;
type Open<Item> = (context: ItemContext) => Items<Item>;

const iterableParameters = parameters("IterableDataset", {
  open: operand(aFunction<Open<unknown>>()),
  shuffleBuffer: named(
    aNumber({ holds: (value) => Number.isSafeInteger(value) && value >= 0, expected: "a whole number of at least 0" }),
    0,
  ),
});

/**
 * A data set without a length or indices. Each epoch of a {@link DataLoader} calls the function, and iterates over the
 * generator, stream or array that it returns. The context has the epoch and its seed, so random changes and the order
 * of `shuffleBuffer` depend only on the loader's seed and the epoch. To resume within an epoch, the loader skips the
 * items it has already returned.
 *
 * @param open returns the items of an epoch
 *
 * @example
 * const lines = new data.IterableDataset(() => readLines("corpus.txt"), { shuffleBuffer: 1000 });
 * for await (const batch of new data.DataLoader(lines, { batchSize: 32, seed: 1 })) train(batch);
 *
 * @throws {ArgumentError} @throws {DataError} (when it is iterated over) `notIterable`
 */
export class IterableDataset<Item> implements AsyncIterable<Item> {
  readonly #open: Open<Item>;
  readonly #shuffleBuffer: number;

  constructor(open: (context: ItemContext) => Iterable<Item> | AsyncIterable<Item>, options?: IterableDatasetOptions);
  constructor(...values: unknown[]) {
    const { open, shuffleBuffer } = iterableParameters(values);
    this.#open = open as Open<Item>;
    this.#shuffleBuffer = shuffleBuffer;
  }

  /** Iterates over the items of epoch 0 with seed 0. */
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    return this.items({ epoch: 0, seed: 0n });
  }

  /** @internal Iterates over the items of an epoch. */
  async *items(context: ItemContext): AsyncGenerator<Item, void, undefined> {
    const items = this.#open(context);
    const isIterable = typeof items === "object" && (Symbol.iterator in items || Symbol.asyncIterator in items);
    if (items === null || !isIterable)
      throw new DataError(
        "IterableDataset",
        "notIterable",
        `expected the function to return an iterable, got ${describeValue(items)}`,
      );
    if (this.#shuffleBuffer > 1) yield* shuffled(items, this.#shuffleBuffer, context.seed);
    else yield* items;
  }
}

/** Yields a random item of a full buffer, and puts the next item in its place; at the end it empties the buffer. */
async function* shuffled<Item>(items: Items<Item>, size: number, seed: bigint): AsyncGenerator<Item, void, undefined> {
  const buffer: Item[] = [];
  const draw = drawer(seed);
  for await (const item of items) {
    if (buffer.length < size) {
      buffer.push(item);
      continue;
    }
    const at = draw(size);
    yield buffer[at]!;
    buffer[at] = item;
  }
  while (buffer.length > 0) {
    const at = draw(buffer.length);
    yield buffer[at]!;
    buffer[at] = lastElement(buffer);
    buffer.pop();
  }
}

/** Returns a function that draws whole numbers below a limit; each depends on the seed and the number of draws. */
function drawer(seed: bigint): (limit: number) => number {
  const key = callKey(seed, 0n);
  let drawn = 0n;
  return (limit) => {
    const [low, high] = splitWords(drawn++);
    return Math.floor((philox([low, high, 0, 0], key)[0] / 2 ** 32) * limit);
  };
}
