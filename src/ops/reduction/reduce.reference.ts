/** Reductions on the reference backend. */
import type { Implementation } from "../../backend/backend.ts";
import { forEachOffset, store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { elementCount, rowMajorStrides, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type FoldName, type Formula, folds } from "./folds.ts";
import type { ExtremumName, ReductionAttributes } from "./primitive.ts";

export const foldReference = (name: FoldName): Implementation<ReductionAttributes, [Tensor], [Tensor]> => ({
  run({ inputs: [input], outputs: [output], attributes: { axes, parameter } }) {
    const { float, integer }: Formula = folds[name];
    if (isFloat(input.dtype) || integer === undefined)
      store(
        output,
        groups(toNumbers(input), input.shape, axes).map((values) => float(values, parameter)),
      );
    else store(output, groups(toIntegers(input), input.shape, axes).map(integer));
  },
});

export const extremumReference = (
  name: ExtremumName,
): Implementation<ReductionAttributes, [Tensor], [Tensor, Tensor]> => ({
  run({ inputs: [input], outputs: [values, indices], attributes: { axes } }) {
    const elements = isFloat(input.dtype) ? toNumbers(input) : toIntegers(input);
    const lists = groups<number | bigint>(elements, input.shape, axes);
    const found = lists.map((list) => extremeIndex(list, name));
    store(
      values,
      lists.map((list, result) => list[found[result]]),
    );
    store(indices, found);
  },
});

/** Returns the index of the first NaN, or else of the first largest (smallest) element. */
function extremeIndex(values: readonly (number | bigint)[], name: ExtremumName): number {
  const nan = values.findIndex((value) => typeof value === "number" && Number.isNaN(value));
  if (nan >= 0) return nan;
  const isBetter = (value: number | bigint, best: number | bigint) => (name === "max" ? value > best : value < best);
  return values.reduce<number>((best, value, index) => (isBetter(value, values[best]) ? index : best), 0);
}

/** Returns the elements of each result; results and elements are in row-major order. */
function groups<Value>(values: ArrayLike<Value>, shape: Shape, axes: readonly number[]): Value[][] {
  const kept = shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  const strides = rowMajorStrides(kept).map((stride, axis) => (axes.includes(axis) ? 0 : stride));
  const lists = Array.from({ length: elementCount(kept) }, (): Value[] => []);
  forEachOffset(shape, { strides, offset: 0 }, (result, index) => {
    lists[result].push(values[index]!);
  });
  return lists;
}
