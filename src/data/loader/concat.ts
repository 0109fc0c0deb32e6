/** Concatenation of data sets. */
import { listOf } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { aDataset, checkIndex, type Dataset, type ItemContext } from "./items.ts";

const concatParameters = parameters("ConcatDataset", {
  datasets: operand(listOf(aDataset, "a list of data sets: objects with length and get(index)")),
});

/**
 * Concatenates several data sets: the items of one data set follow those of another.
 *
 * @example
 * const all = new data.ConcatDataset([train, extra]);
 * all.get(train.length); // extra.get(0)
 *
 * @throws {ArgumentError} (also `get`) `outOfRange` for an invalid index.
 */
export class ConcatDataset<Item> implements Dataset<Item> {
  readonly datasets: readonly Dataset<Item>[];
  /** The index of the first item after each data set. */
  readonly #ends: readonly number[];

  constructor(datasets: readonly Dataset<Item>[]);
  constructor(...values: unknown[]) {
    this.datasets = concatParameters(values).datasets as Dataset<Item>[];
    let end = 0;
    this.#ends = this.datasets.map(({ length }) => {
      end += length;
      return end;
    });
  }

  get length(): number {
    return this.#ends.at(-1) ?? 0;
  }

  get(index: number, context?: ItemContext): Item | Promise<Item> {
    checkIndex("ConcatDataset.get", index, this.length);
    const at = this.#ends.findIndex((end) => index < end);
    return this.datasets[at].get(index - (this.#ends[at - 1] ?? 0), context);
  }
}
