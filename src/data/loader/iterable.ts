/** Items without an index: streams, files that are read once an epoch. */
import { describeValue } from "../../core/describe.ts";
import { DataError } from "../../core/errors.ts";
import { aFunction, aNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { callKey, philox, splitWords } from "../../random/philox.ts";
import type { ItemContext } from "./items.ts";

/** Options of {@link IterableDataset}. */
export interface IterableDatasetOptions {
  /**
   * How many items are held back to be given in a random order: each next item is drawn from them. 0 keeps the order.
   * Default 0.
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
 * A data set without a length or indices. Each epoch of a {@link DataLoader} calls the function, and reads what it
 * returns from the start: a generator, a stream, an array. The context has the number of the epoch and its seed, so
 * that random changes and the order of `shuffleBuffer` are functions of the loader's seed and the epoch alone. To
 * resume within an epoch, the loader reads over the items that were given.
 *
 * @param open returns the items of an epoch
 *
 * @example
 * const lines = new data.IterableDataset(() => readLines("corpus.txt"), { shuffleBuffer: 1000 });
 * for await (const batch of new data.DataLoader(lines, { batchSize: 32, seed: 1 })) train(batch);
 *
 * @throws {ArgumentError} @throws {DataError} (where it is iterated over) `notIterable`
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

  /** The items of epoch 0 under the seed 0. */
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    return this.items({ epoch: 0, seed: 0n });
  }

  /** @internal The items of an epoch. */
  async *items(context: ItemContext): AsyncGenerator<Item, void, undefined> {
    const items = this.#open(context);
    const isIterable = typeof items === "object" && (Symbol.iterator in items || Symbol.asyncIterator in items);
    if (items === null || !isIterable)
      throw new DataError(
        "IterableDataset",
        "notIterable",
        `expected the function to return something to iterate over, got ${describeValue(items)}`,
      );
    if (this.#shuffleBuffer > 1) yield* shuffled(items, this.#shuffleBuffer, context.seed);
    else yield* items;
  }
}

/** Each item takes the place in the buffer of the one that is given; what is left at the end is drawn too. */
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
    buffer[at] = buffer.at(-1)!;
    buffer.pop();
  }
}

/** Draws whole numbers below a limit, each a function of the seed and of how many were drawn. */
function drawer(seed: bigint): (limit: number) => number {
  const key = callKey(seed, 0n);
  let drawn = 0n;
  return (limit) => {
    const [low, high] = splitWords(drawn++);
    return Math.floor((philox([low, high, 0, 0], key)[0] / 2 ** 32) * limit);
  };
}
