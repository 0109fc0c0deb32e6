/** Data sets of items by index, and data sets derived from them. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aFunction, aNumber, listOf } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import { select } from "../../ops/view/slice.ts";
import { seed as aSeed } from "../../random/kinds.ts";
import { type Permutation, permutationOf, permuted } from "../../random/permutation.ts";
import { callKey } from "../../random/philox.ts";
import { severalTensors } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The epoch and seed with which an item is read; random changes of the item depend on them. */
export interface ItemContext {
  /** The number of complete epochs. */
  readonly epoch: number;
  /** A 64-bit seed for this item in this epoch: `new Generator(seed)`. */
  readonly seed: bigint;
}

/** Items by index, which is at least 0 and below `length`. */
export interface Dataset<Item> {
  readonly length: number;
  /** Returns the item at an index, or a promise of it. */
  get(index: number, context?: ItemContext): Item | Promise<Item>;
}

/** @internal Accepts an object with `length` and `get`. */
export const aDataset: Kind<Dataset<unknown>> = {
  expected: "a data set: an object with length and get(index)",
  parse(value) {
    if (typeof value !== "object" || value === null) return undefined;
    const given: Partial<Dataset<unknown>> = value;
    const isSize = Number.isSafeInteger(given.length) && given.length! >= 0;
    return isSize && typeof given.get === "function" ? (given as Dataset<unknown>) : undefined;
  },
};

/**
 * A data set of tensors with the same number of rows. Item i is the list of row i of each tensor, as views.
 *
 * @example
 * const digits = new data.TensorDataset(images, labels);
 * digits.get(0); // [images[0], labels[0]]
 *
 * @throws {ShapeError} `sizesDiffer`, `noAxes`. @throws {ArgumentError}
 */
export class TensorDataset<T extends readonly Tensor[] = Tensor[]> implements Dataset<T> {
  readonly tensors: T;
  readonly length: number;

  constructor(...tensors: T) {
    const checked = tensorParameters([[...tensors]]).tensors;
    this.length = checked[0]?.shape[0] ?? -1;
    for (const each of checked)
      if (each.rank === 0 || each.shape[0] !== this.length)
        throw new ShapeError(
          "TensorDataset",
          each.rank === 0 ? "noAxes" : "sizesDiffer",
          `expected tensors with the same number of rows, got ${checked.map((one) => one.describe()).join(", ")}`,
        );
    this.tensors = checked as T;
  }

  get(index: number, _context?: ItemContext): T {
    checkIndex("TensorDataset.get", index, this.length);
    return this.tensors.map((each) => select(each, 0, index)) as unknown as T;
  }
}
const tensorParameters = parameters("TensorDataset", { tensors: operand(severalTensors) });

/** @internal Checks an index. @throws {ArgumentError} `outOfRange` */
export function checkIndex(operation: string, index: number, length: number): void {
  if (Number.isSafeInteger(index) && index >= 0 && index < length) return;
  throw new ArgumentError(
    operation,
    "outOfRange",
    `expected an index of at least 0 and below ${length}, got ${String(index)}`,
  );
}

/**
 * A data set of selected items of another data set, by their indices.
 *
 * @example
 * new data.Subset(digits, [3, 1, 4]).get(0); // digits.get(3)
 *
 * @throws {ArgumentError} `outOfRange` for an invalid index.
 */
export class Subset<Item> implements Dataset<Item> {
  readonly dataset: Dataset<Item>;
  readonly indices: readonly number[];

  constructor(dataset: Dataset<Item>, indices: readonly number[]);
  constructor(...values: unknown[]) {
    const { dataset, indices } = subsetParameters(values);
    for (const index of indices) checkIndex("Subset", index, dataset.length);
    this.dataset = dataset as Dataset<Item>;
    this.indices = indices;
  }

  get length(): number {
    return this.indices.length;
  }

  get(index: number, context?: ItemContext): Item | Promise<Item> {
    checkIndex("Subset.get", index, this.length);
    return this.dataset.get(this.indices[index], context);
  }
}
const wholes = listOf(
  aNumber({ holds: Number.isSafeInteger, expected: "a whole number" }),
  "a list of indices: whole numbers",
);
const subsetParameters = parameters("Subset", { dataset: operand(aDataset), indices: operand(wholes) });

/**
 * A data set that applies a function to each item of another data set. The function may return a promise.
 *
 * @example
 * new data.MappedDataset(digits, ([x, y], { seed }) => [noisy(x, new Generator(seed)), y]);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export class MappedDataset<Item, Result> implements Dataset<Result> {
  readonly dataset: Dataset<Item>;
  readonly #change: (item: Item, context: ItemContext) => Result | Promise<Result>;

  constructor(dataset: Dataset<Item>, change: (item: Item, context: ItemContext) => Result | Promise<Result>);
  constructor(...values: unknown[]) {
    const { dataset, change } = mappedParameters(values);
    this.dataset = dataset as Dataset<Item>;
    this.#change = change as (item: Item, context: ItemContext) => Result | Promise<Result>;
  }

  get length(): number {
    return this.dataset.length;
  }

  get(index: number, context: ItemContext = { epoch: 0, seed: BigInt(index) }): Result | Promise<Result> {
    const item = this.dataset.get(index, context);
    return item instanceof Promise ? item.then((loaded) => this.#change(loaded, context)) : this.#change(item, context);
  }
}
const mappedParameters = parameters("MappedDataset", {
  dataset: operand(aDataset),
  change: operand(aFunction<(item: unknown, context: ItemContext) => unknown>()),
});

/** Options of {@link randomSplit}. */
export interface RandomSplitOptions {
  /** The seed of the split. Default 0. */
  seed?: number | bigint;
}

/**
 * Splits a data set at random into parts of the given sizes, or of the given fractions, which must add up to 1.
 *
 * @example
 * const [train, heldOut] = data.randomSplit(digits, [0.9, 0.1], { seed: 1 });
 *
 * @throws {ArgumentError} `invalidOption` if sizes do not add up to the size of the data set.
 */
export function randomSplit<Item>(
  dataset: Dataset<Item>,
  sizes: readonly number[],
  options?: RandomSplitOptions,
): Subset<Item>[];
export function randomSplit(...values: unknown[]): Subset<unknown>[] {
  const { dataset, sizes, seed } = randomSplitParameters(values);
  const { length } = dataset;
  const counts = countsOf(sizes, length);
  const order = permutationOf(length, callKey(seed, 0n));
  let start = 0;
  return counts.map((count) => {
    const indices = Array.from({ length: count }, (_, at) => permuted(order, length, start + at));
    start += count;
    return new Subset(dataset, indices);
  });
}
const randomSplitParameters = parameters("randomSplit", {
  dataset: operand(aDataset),
  sizes: operand(listOf(aNumber({ holds: (value) => value >= 0, expected: "a size" }), "a list of sizes or shares")),
  seed: named(aSeed, 0n),
});

/** Rounds fractions down to whole numbers of items, and gives the rest to the first parts, one each, as in PyTorch. */
function countsOf(sizes: readonly number[], length: number): number[] {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (sizes.every(Number.isSafeInteger) && total === length) return [...sizes];
  if (Math.abs(total - 1) > 1e-9)
    throw new ArgumentError(
      "randomSplit",
      "invalidOption",
      `expected sizes that add up to ${length}, or shares that add up to 1, got ${sizes.join(", ")}`,
    );
  const counts = sizes.map((share) => Math.floor(share * length));
  const left = length - counts.reduce((sum, count) => sum + count, 0);
  return counts.map((count, at) => count + (at < left ? 1 : 0));
}

/** @internal Returns the order of an epoch. */
export const orderOf = (length: number, seed: bigint, epoch: number): Permutation =>
  permutationOf(length, callKey(seed, BigInt(epoch)));
