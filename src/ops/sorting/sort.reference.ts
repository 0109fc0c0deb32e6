import type { Implementation } from "../../backend/backend.ts";
import { forEachIndex, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { rowMajorStrides } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { SortAttributes } from "./primitive.ts";

type Comparison<Value> = (a: Value, b: Value) => number;

/** Orders NaN above infinity and equal to itself, and −0 equal to 0. */
const compareFloats: Comparison<number> = (a, b) =>
  Number.isNaN(a) || Number.isNaN(b)
    ? Number(Number.isNaN(a)) - Number(Number.isNaN(b))
    : Number(a > b) - Number(a < b);
const compareIntegers: Comparison<bigint> = (a, b) => Number(a > b) - Number(a < b);

export const sortReference: Implementation<SortAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ inputs: [x], outputs: [values, indices], attributes: { dim, descending } }) {
    const compare = isFloat(x.dtype)
      ? comparing(toNumbers(x), compareFloats)
      : comparing(toIntegers(x), compareIntegers);
    const stored = x.storage.array(x.dtype);
    const sorted = values.storage.array(values.dtype);
    const order = indices.storage.array("int64");
    const dense = rowMajorStrides(x.shape);
    const slices = x.shape.with(dim, 1);
    forEachIndex(slices, [{ strides: dense, offset: 0 }, x, values, indices], ([slice, from, to, toIndex]) => {
      const at = (index: number) => slice + index * dense[dim];
      const sorting = Array.from({ length: x.shape[dim] }, (_, index) => index);
      // Array.prototype.sort is stable by its specification.
      sorting.sort((a, b) => (descending ? compare(at(b), at(a)) : compare(at(a), at(b))));
      for (const [rank, index] of sorting.slice(0, values.shape[dim]).entries()) {
        sorted[to + rank * values.strides[dim]] = stored[from + index * x.strides[dim]];
        order[toIndex + rank * indices.strides[dim]] = BigInt(index);
      }
    });
  },
};

const comparing =
  <Value>(elements: ArrayLike<Value>, compare: Comparison<Value>) =>
  (a: number, b: number): number =>
    compare(elements[a]!, elements[b]!);
