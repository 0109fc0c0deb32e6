/**
 * Operations that change a tensor in place. They are not recorded, and reject tensors that take part in a graph.
 *
 * Each computes a new tensor and copies it if operands share memory with the target or the target is a view. Otherwise
 * it writes into the target. Each increments the version of the storage, so that a backward pass detects changed saved
 * tensors.
 */

import { AutogradError } from "../../autograd/node.ts";
import { needsGradient } from "../../autograd/record.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { type DType, isComplex, isFloat } from "../../tensor/dtype.ts";
import { aTensor, scalarOrElement, tensorOrScalar } from "../../tensor/kinds.ts";
import { broadcastShapes, formatShape, sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type AlphaOptions, alphaParameter, mul, plainAdd, plainSub, scaledBy } from "../elementwise/arithmetic.ts";
import { computeInPlace, renamed } from "../elementwise/define.ts";
import { type DivOptions, floorDivide, roundingParameter, trueDivide, truncDivide } from "../elementwise/division.ts";
import { checkNoBools, scalarTensor } from "../elementwise/operands.ts";
import type { BinaryOperation, Operand } from "../elementwise/types.ts";
import { clone, copyInto } from "./copy.ts";

/**
 * Copies the elements of the source to x in place. The source is broadcast and converted. If x is a view, tensors that
 * share its memory change too.
 *
 * @returns x
 *
 * @example
 * copy_(slice(x, { end: 2 }), 0);
 *
 * @throws {AutogradError} `inPlace` if x or the source requires a gradient, outside `noGrad`; `backward()` reports
 * saved tensors that were changed.
 * @throws {ShapeError} if the source can't be broadcast to x's shape.
 * @throws {ArgumentError} if elements of x share memory (`expand`).
 */
export function copy_<T extends Tensor>(x: T, source: Operand): T;
export function copy_(...values: unknown[]): Tensor {
  const { x, source } = copyParameters(values);
  return assign("copy_", x, source instanceof Tensor ? source : scalarTensor(source, x.dtype, "copy_"));
}
copy_.method = "same" as const;
const copyParameters = parameters("copy_", { x: operand(aTensor), source: operand(tensorOrScalar) });

/**
 * Fills x in place with a number, or with the element of a tensor without axes.
 *
 * @returns x
 *
 * @example
 * fill_(zeros([3]), 2); // float32 [2, 2, 2]
 *
 * @throws as {@link copy_}
 */
export function fill_<T extends Tensor>(x: T, value: number | bigint | boolean | Tensor): T;
export function fill_(...values: unknown[]): Tensor {
  const { x, value } = fillParameters(values);
  return assign("fill_", x, value instanceof Tensor ? value : scalarTensor(value, x.dtype, "fill_"));
}
fill_.method = "same" as const;
const fillParameters = parameters("fill_", { x: operand(aTensor), value: operand(scalarOrElement) });

/**
 * Fills x in place with 0.
 *
 * @returns x
 *
 * @example
 * zero_(tensor([1, 2])); // float32 [0, 0]
 *
 * @throws as {@link copy_}
 */
export function zero_<T extends Tensor>(x: T): T;
export function zero_(...values: unknown[]): Tensor {
  const { x } = zeroParameters(values);
  return assign("zero_", x, scalarTensor(0, x.dtype));
}
zero_.method = "same" as const;
const zeroParameters = parameters("zero_", { x: operand(aTensor) });

const updating = { x: operand(aTensor), other: operand(tensorOrScalar) } as const;

/**
 * Computes x + alpha · other in place.
 *
 * @param other a number, or a tensor that broadcasts to x's shape
 * @returns x
 *
 * @example
 * add_(tensor([1, 2]), tensor([3, 4]), { alpha: 10 }); // float32 [31, 42]
 *
 * @throws {DTypeError} if x's dtype can't hold the result's kind, such as a float result for integers.
 * @throws as {@link copy_}
 */
export function add_<T extends Tensor>(x: T, other: Operand, options?: AlphaOptions): T;
export function add_(...values: unknown[]): Tensor {
  const { x, other, alpha } = addParameters(values);
  return update("add_", x, scaledBy("add_", x, other, alpha), compute.add);
}
add_.method = "same" as const;
const addParameters = parameters("add_", { ...updating, alpha: alphaParameter });
/**
 * Computes x − alpha · other in place.
 *
 * @example
 * sub_(tensor([3, 4]), 1); // float32 [2, 3]
 *
 * @throws {DTypeError} for bools. @throws as {@link add_}
 */
export function sub_<T extends Tensor>(x: T, other: Operand, options?: AlphaOptions): T;
export function sub_(...values: unknown[]): Tensor {
  const { x, other, alpha } = subParameters(values);
  checkNoBools("sub_", { x, other });
  return update("sub_", x, scaledBy("sub_", x, other, alpha), compute.sub);
}
sub_.method = "same" as const;
const subParameters = parameters("sub_", { ...updating, alpha: alphaParameter });
/**
 * Computes x · other in place.
 *
 * @example
 * mul_(tensor([3, 4]), 2); // float32 [6, 8]
 *
 * @throws as {@link add_}
 */
export function mul_<T extends Tensor>(x: T, other: Operand): T;
export function mul_(...values: unknown[]): Tensor {
  const { x, other } = mulParameters(values);
  return update("mul_", x, other, compute.mul);
}
mul_.method = "same" as const;
const mulParameters = parameters("mul_", updating);
/**
 * Computes x / other in place.
 *
 * @example
 * div_(tensor([7, -7]), 2, { roundingMode: "floor" }); // float32 [3, -4]
 *
 * @throws as {@link add_}
 */
export function div_<T extends Tensor>(x: T, other: Operand, options?: DivOptions): T;
export function div_(...values: unknown[]): Tensor {
  const { x, other, roundingMode } = divParameters(values);
  return update("div_", x, other, compute[roundingMode ?? "div"]);
}
div_.method = "same" as const;
const divParameters = parameters("div_", { ...updating, roundingMode: roundingParameter });

const compute = {
  add: renamed("add_", plainAdd),
  sub: renamed("sub_", plainSub),
  mul: renamed("mul_", mul),
  div: renamed("div_", trueDivide),
  floor: renamed("div_", floorDivide),
  trunc: renamed("div_", truncDivide),
};

function update<T extends Tensor>(operation: string, x: T, other: Operand, computeWith: BinaryOperation): T {
  checkTarget(operation, x, other instanceof Tensor ? [other] : []);
  if (other instanceof Tensor) checkBroadcast(operation, x, other);
  if (computeInPlace(computeWith, x, [other])) return x;
  return storeResult(operation, x, computeWith(x, other));
}

/**
 * Copies a result into x, converted to its dtype, and disposes of the result.
 *
 * @throws {DTypeError} if x's dtype can't hold the result's kind.
 */
export function storeResult<T extends Tensor>(operation: string, x: T, result: Tensor): T {
  if (kindOf(result.dtype) > kindOf(x.dtype))
    throw new DTypeError(
      operation,
      "kindDiffers",
      `the result is ${result.dtype}, which ${x.describe()} can't hold; use the operation that returns a new tensor`,
    );
  copyInto(x, result);
  result.dispose();
  return x;
}

function assign<T extends Tensor>(operation: string, x: T, source: Tensor): T {
  checkTarget(operation, x, [source]);
  checkBroadcast(operation, x, source);
  // If both share a storage, elements could be overwritten before they are read.
  copyInto(x, source.storage === x.storage ? clone(source) : source);
  return x;
}

const kindOf = (dtype: DType): number => (isComplex(dtype) ? 3 : isFloat(dtype) ? 2 : dtype === "bool" ? 0 : 1);

export function checkTarget(operation: string, x: Tensor, sources: readonly Tensor[]): void {
  for (const tensor of [x, ...sources]) tensor.checkAlive(operation);
  if (needsGradient(x, ...sources))
    throw new AutogradError(
      operation,
      "inPlace",
      `${x.isLeaf ? "a leaf" : "a tensor"} ${x.describe()} in an autograd graph can't be changed in place; ` +
        "change it within noGrad(() => …), or make a new tensor",
    );
  const repeated = x.shape.findIndex((size, axis) => size > 1 && x.strides[axis] === 0);
  if (repeated >= 0)
    throw new ArgumentError(
      operation,
      "repeats",
      `axis ${repeated} of ${x.describe()} is expanded, so its elements share memory; change a clone() instead`,
    );
}

export function checkBroadcast(operation: string, x: Tensor, source: Tensor): void {
  if (sameShape(broadcastShapes(operation, x.shape, source.shape), x.shape)) return;
  throw new ShapeError(
    operation,
    "shapesDiffer",
    `the result would have more elements than x: ${formatShape(source.shape)} can't be broadcast to ` +
      formatShape(x.shape),
  );
}
