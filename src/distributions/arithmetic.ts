/** Operations with plain types, since distributions compute with tensors of any dtype and with numbers. */
import * as operations from "../ops/index.ts";
import type { Shape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";

/** A tensor or a number. */
export type Value = Tensor | number;
type Pair = (a: Value, b: Value) => Tensor;

export const add = operations.add as Pair;
export const sub = operations.sub as Pair;
export const mul = operations.mul as Pair;
export const div = operations.div as Pair;
export const pow = operations.pow as Pair;
export const xlogy = operations.xlogy as Pair;
export const xlog1py = operations.xlog1py as Pair;
export const gt = operations.gt as Pair;
export const ge = operations.ge as Pair;
export const lt = operations.lt as Pair;
export const le = operations.le as Pair;
export const eq = operations.eq as Pair;
export const and = operations.logicalAnd as Pair;
export const or = operations.logicalOr as Pair;
export const not = operations.logicalNot as (a: Tensor) => Tensor;
export const where = operations.where as (condition: Tensor, a: Value, b: Value) => Tensor;

type Single = (x: Tensor) => Tensor;
export const neg = operations.neg as Single;
export const abs = operations.abs as Single;
export const exp = operations.exp as Single;
export const expm1 = operations.expm1 as Single;
export const log = operations.log as Single;
export const log1p = operations.log1p as Single;
export const sqrt = operations.sqrt as Single;
export const square = operations.square as Single;
export const sign = operations.sign as Single;
export const floor = operations.floor as Single;
export const lgamma = operations.lgamma as Single;
export const digamma = operations.digamma as Single;
export const sigmoid = operations.sigmoid as Single;

/** Sums the last axis, or the last axes. */
export const sumLast = (x: Tensor, axes = 1, keepdim = false): Tensor =>
  axes === 0
    ? x
    : operations.sum(
        x,
        Array.from({ length: axes }, (_, at) => -1 - at),
        keepdim,
      );

/** Adds an axis of size 1 at the end. */
export const withAxis = (x: Tensor): Tensor => operations.unsqueeze(x, -1);

/** Adds several values. */
export const sumOf = (first: Tensor, ...rest: readonly Value[]): Tensor =>
  rest.reduce<Tensor>((total, value) => add(total, value), first);

/** Returns a tensor of one value, in the dtype of `like`. */
export const constant = (value: number, like: Tensor, shape: Shape = like.shape): Tensor =>
  operations.full(shape, value, { dtype: like.dtype });

/** Converts a bool to the dtype of `like`. */
export const asNumber = (condition: Tensor, like: Tensor): Tensor => operations.toDType(condition, like.dtype);

/** Broadcasts a tensor to a shape, as a view. */
export const expandTo = (x: Tensor, shape: Shape): Tensor => operations.expand(x, shape);

/** Evaluates a polynomial by Horner's rule, the highest coefficient first. */
export function polynomial(x: Tensor, coefficients: readonly number[]): Tensor {
  const [first, ...rest] = coefficients;
  let value: Value = first!;
  for (const coefficient of rest) value = add(mul(x, value), coefficient);
  return value instanceof Tensor ? value : constant(value, x);
}
