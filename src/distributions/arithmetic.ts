/** Operations with plain types, since distributions compute with tensors of any dtype and with numbers. */
import * as operations from "../ops/index.ts";
import type { Shape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";

/** A tensor or a number. */
export type Value = Tensor | number;
type Pair = (a: Value, b: Value) => Tensor;

export const add: Pair = operations.add;
export const sub: Pair = operations.sub;
export const mul: Pair = operations.mul;
export const div: Pair = operations.div;
export const pow: Pair = operations.pow;
export const xlogy: Pair = operations.xlogy;
export const xlog1py: Pair = operations.xlog1py;
export const gt: Pair = operations.gt;
export const ge: Pair = operations.ge;
export const lt: Pair = operations.lt;
export const le: Pair = operations.le;
export const eq: Pair = operations.eq;
export const and: Pair = operations.logicalAnd;
export const or: Pair = operations.logicalOr;
export const not: (a: Tensor) => Tensor = operations.logicalNot;
export const where = operations.where;

type Single = (x: Tensor) => Tensor;
export const neg: Single = operations.neg;
export const abs: Single = operations.abs;
export const exp: Single = operations.exp;
export const expm1: Single = operations.expm1;
export const log: Single = operations.log;
export const log1p: Single = operations.log1p;
export const sqrt: Single = operations.sqrt;
export const square: Single = operations.square;
export const sign: Single = operations.sign;
export const floor: Single = operations.floor;
export const lgamma: Single = operations.lgamma;
export const digamma: Single = operations.digamma;
export const sigmoid: Single = operations.sigmoid;

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
  let value: Value = first;
  for (const coefficient of rest) value = add(mul(x, value), coefficient);
  return value instanceof Tensor ? value : constant(value, x);
}
