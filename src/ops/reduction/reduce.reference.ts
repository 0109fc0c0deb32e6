/** The definition of each reduction, on the list of elements of one result. */

import type { Implementation } from "../../backend/backend.ts";
import { forEachOffset, store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { elementCount, rowMajorStrides, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ExtremumName, FoldName, ReductionAttributes } from "./primitive.ts";

interface Formula {
  readonly float: (values: readonly number[], parameter: number) => number | boolean;
  /** The exact formula for integers. If it is missing, integers are computed as floats. */
  readonly integer?: (values: readonly bigint[]) => bigint | boolean;
}

const largest = (values: readonly number[]): number =>
  values.reduce((best, value) => (best >= value || Number.isNaN(best) ? best : value), Number.NEGATIVE_INFINITY);
const smallest = (values: readonly number[]): number => -largest(values.map((value) => -value));

const formulas: Readonly<Record<FoldName, Formula>> = {
  sum: { float: sumOf, integer: (values) => values.reduce((total, value) => total + value, 0n) },
  mean: { float: (values) => sumOf(values) / values.length },
  prod: {
    float: (values) => values.reduce((product, value) => product * value, 1),
    integer: (values) => values.reduce((product, value) => BigInt.asIntN(64, product * value), 1n),
  },
  amax: { float: largest, integer: (values) => values.reduce((best, value) => (value > best ? value : best)) },
  amin: { float: smallest, integer: (values) => values.reduce((best, value) => (value < best ? value : best)) },
  all: {
    float: (values) => values.every((value) => value !== 0),
    integer: (values) => values.every((value) => value !== 0n),
  },
  any: {
    float: (values) => values.some((value) => value !== 0),
    integer: (values) => values.some((value) => value !== 0n),
  },
  nansum: { float: (values) => sumOf(values.filter((value) => !Number.isNaN(value))) },
  nancount: { float: (values) => values.filter((value) => !Number.isNaN(value)).length },
  norm0: { float: (values) => values.filter((value) => value !== 0).length },
  norm1: { float: (values) => sumOf(values.map(Math.abs)) },
  norm2: { float: (values) => Math.sqrt(sumOf(values.map((value) => value * value))) },
  normInf: { float: (values) => Math.max(0, largest(values.map(Math.abs))) },
  normNegInf: { float: (values) => smallest(values.map(Math.abs)) },
  normP: { float: (values, p) => sumOf(values.map((value) => Math.abs(value) ** p)) ** (1 / p) },
  var: { float: varianceOf },
  std: { float: (values, correction) => Math.sqrt(varianceOf(values, correction)) },
  logsumexp: { float: logSumExpOf },
};

function varianceOf(values: readonly number[], correction: number): number {
  if (values.length === 0) return Number.NaN;
  const mean = sumOf(values) / values.length;
  return sumOf(values.map((value) => (value - mean) ** 2)) / Math.max(0, values.length - correction);
}

function logSumExpOf(values: readonly number[]): number {
  const top = largest(values);
  const shift = Math.abs(top) === Number.POSITIVE_INFINITY ? 0 : top;
  return shift + Math.log(sumOf(values.map((value) => Math.exp(value - shift))));
}

export const foldReference = (name: FoldName): Implementation<ReductionAttributes, [Tensor], [Tensor]> => ({
  run({ inputs: [input], outputs: [output], attributes: { axes, parameter } }) {
    const { float, integer } = formulas[name];
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
