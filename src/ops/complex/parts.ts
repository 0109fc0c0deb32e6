/** Complex numbers from and to real ones: their parts, views, conjugates. */

import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type ComplexDType, complexDType, type DType, isComplex, isFloat, type RealOf } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { isComplexTensor, type Part, realView } from "../../tensor/planes.ts";
import { broadcastShapes, MAX_RANK } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { lt } from "../elementwise/comparison.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { isnan } from "../elementwise/predicates.ts";
import { atan2, cos, sin } from "../elementwise/trigonometric.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";
import { expand, sumTo } from "../view/expand.ts";
import "./elementwise.ts";
import "./products.ts";
import "./random.ts";
import { conjugate, fromPart, partOf } from "./part.ts";
import { joinedParts } from "./planewise.ts";

/** The complex dtype whose parts have a float dtype. */
export type ComplexFrom<D extends DType> = D extends "float64" | "complex128" ? "complex128" : "complex64";

const onePart = { x: operand(aTensor) };

/**
 * Returns the real part of each element: a view of the same memory. A real tensor is returned unchanged.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * real(complex(tensor([1, 2]), tensor([3, 4]))); // float32 [1, 2]
 */
export function real<D extends DType>(x: Tensor<D>): Tensor<RealOf<D>>;
export function real(...values: unknown[]): Tensor {
  const { x } = realParameters(values);
  return isComplexTensor(x) ? partOf("real", x, 0) : x;
}
real.method = "real" as const;
const realParameters = parameters("real", onePart);

/**
 * Returns the imaginary part of each element: a view of the same memory.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * imag(complex(tensor([1, 2]), tensor([3, 4]))); // float32 [3, 4]
 *
 * @throws {DTypeError} if `x` is not complex.
 */
export function imag<D extends DType>(x: Tensor<D>): Tensor<RealOf<D>>;
export function imag(...values: unknown[]): Tensor {
  const { x } = imagParameters(values);
  return partOf("imag", checkComplex("imag", x), 1);
}
imag.method = "real" as const;
const imagParameters = parameters("imag", onePart);

/**
 * Returns the complex conjugate of each element: a copy with the opposite imaginary part. A real tensor is returned
 * unchanged. (PyTorch marks a view as conjugated instead, which every later operation must resolve.)
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * conj(complex(tensor([1, 2]), tensor([3, 4]))); // complex64 [1-3i, 2-4i]
 */
export function conj<D extends DType>(x: Tensor<D>): Tensor<D>;
export function conj(...values: unknown[]): Tensor {
  const { x } = conjParameters(values);
  return conjugate(x);
}
conj.method = "same" as const;
const conjParameters = parameters("conj", onePart);

/**
 * Returns a view of complex numbers as pairs of real ones.
 *
 * @param x […], complex64 or complex128, of at most 7 axes
 * @returns […, 2], float32 or float64: the real and the imaginary parts
 *
 * @example
 * viewAsReal(complex(tensor([1, 2]), tensor([3, 4]))); // float32 [[1, 3], [2, 4]]
 *
 * @throws {DTypeError} if `x` is not complex. @throws {ShapeError} for 8 axes.
 */
export function viewAsReal<D extends DType>(x: Tensor<D>): Tensor<RealOf<D>>;
export function viewAsReal(...values: unknown[]): Tensor {
  const { x } = viewAsRealParameters(values);
  return asReal(checkComplex("viewAsReal", x));
}
viewAsReal.method = "real" as const;
const viewAsRealParameters = parameters("viewAsReal", onePart);

function asReal(x: Tensor): Tensor {
  x.checkAlive("viewAsReal");
  if (x.rank === MAX_RANK)
    throw new ShapeError("viewAsReal", "tooManyAxes", `expected at most ${MAX_RANK - 1} axes, got ${x.describe()}`);
  const view = realView(x);
  record("viewAsReal", [x], [view], [], ([gradient]) => [pairsAsComplex(gradient)], "none");
  return view;
}

/**
 * Returns a view of pairs of real numbers as complex ones.
 *
 * @param x […, 2], float32 or float64: the real and the imaginary parts. The last axis has stride 1; the other strides
 *   and the offset are even
 * @returns […], complex64 or complex128
 *
 * @example
 * viewAsComplex(tensor([[1, 3], [2, 4]])); // complex64 [1+3i, 2+4i]
 *
 * @throws {DTypeError} if `x` is not float32 or float64. @throws {ShapeError} for another last axis, or strides that
 * complex numbers can't have.
 */
export function viewAsComplex<D extends DType>(x: Tensor<D>): Tensor<ComplexFrom<D>>;
export function viewAsComplex(...values: unknown[]): Tensor {
  const { x } = viewAsComplexParameters(values);
  x.checkAlive("viewAsComplex");
  if (x.dtype !== "float32" && x.dtype !== "float64")
    throw new DTypeError("viewAsComplex", "notAFloat", `expected float32 or float64, got ${x.describe()}`);
  if (x.shape.at(-1) !== 2)
    throw new ShapeError(
      "viewAsComplex",
      "notPairs",
      `expected a last axis of size 2, the real and the imaginary part, got ${x.describe()}`,
    );
  if (!isPaired(x))
    throw new ShapeError(
      "viewAsComplex",
      "wrongStrides",
      `expected stride 1 on the last axis, and even other strides and offset, got strides [${x.strides.join(", ")}] ` +
        `and offset ${x.offset}; use viewAsComplex(clone(x))`,
    );
  return asComplex(x);
}
viewAsComplex.method = "complex" as const;
const viewAsComplexParameters = parameters("viewAsComplex", onePart);

/** Whether pairs of numbers have the memory layout of complex numbers. Strides of axes of one element are ignored. */
function isPaired({ shape, strides, offset }: Tensor): boolean {
  const sizes = plainList(shape);
  return (
    strides.at(-1) === 1 &&
    offset % 2 === 0 &&
    plainList(strides).every((stride, axis) => axis === sizes.length - 1 || sizes[axis] <= 1 || stride % 2 === 0)
  );
}

function asComplex(x: Tensor): Tensor<ComplexDType> {
  const shape = plainList(x.shape).slice(0, -1);
  const strides = plainList(x.strides)
    .slice(0, -1)
    .map((stride) => Math.floor(stride / 2)); // only axes of one element have odd strides
  const view = new Tensor(x.storage, complexDType(x.dtype), shape, strides, x.offset / 2);
  record("viewAsComplex", [x], [view], [], ([gradient]) => [asReal(gradient)], "none");
  return view;
}

/** Returns complex numbers from pairs in any layout, by a copy if it is needed. */
function pairsAsComplex(pairs: Tensor): Tensor {
  if (isPaired(pairs)) return asComplex(pairs);
  return complexOf("complex", partAlong(pairs, 0), partAlong(pairs, 1));
}

/** Selects one index of the last axis. */
function partAlong(pairs: Tensor, part: Part): Tensor {
  const [shape, strides] = [plainList(pairs.shape), plainList(pairs.strides)];
  const offset = pairs.offset + part * lastElement(strides);
  const view = new Tensor(pairs.storage, pairs.dtype, shape.slice(0, -1), strides.slice(0, -1), offset);
  const backward = ([gradient]: readonly [Tensor]) => [asReal(fromPart(gradient, part))];
  record("select", [pairs], [view], [], backward, "none");
  return view;
}

/**
 * Creates complex numbers from their real and imaginary parts, with broadcasting.
 *
 * @param re float32 or float64
 * @param im of the same dtype
 * @returns complex64 or complex128
 *
 * @example
 * complex(tensor([1, 2]), tensor([3, 4])); // complex64 [1+3i, 2+4i]
 *
 * @throws {DTypeError} if dtypes differ, or are not float32 or float64.
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function complex<D extends DType>(re: Tensor<D>, im: Tensor<D>): Tensor<ComplexFrom<D>>;
export function complex(...values: unknown[]): Tensor {
  const { re, im } = complexParameters(values);
  checkParts("complex", { re, im });
  return complexOf("complex", re, im);
}
const complexParameters = parameters("complex", { re: operand(aTensor), im: required(aTensor) });

/** Records and computes re + i · im. */
export function complexOf(operation: string, re: Tensor, im: Tensor): Tensor<ComplexDType> {
  const shape = broadcastShapes(operation, re.shape, im.shape);
  const [left, right] = tupleOf(
    [re, im].map((part) => expand(part, shape)),
    2,
  );
  const result = joinedParts(left, right, operation);
  const shapes = [re.shape, im.shape] as const;
  record(
    operation,
    [re, im],
    [result],
    [],
    ([gradient], _saved, needs) =>
      ([0, 1] as const).map((part) => (needs[part] ? sumTo(partOf("real", gradient, part), shapes[part]) : null)),
    "none",
  );
  return result;
}

/**
 * Creates complex numbers from absolute values and angles: abs · (cos angle + i · sin angle), with broadcasting.
 *
 * @param abs float32 or float64
 * @param angle in radians, of the same dtype
 *
 * @example
 * polar(tensor([1, 2]), tensor([0, Math.PI])); // complex64 [1+0i, -2-0i] up to rounding
 *
 * @throws as {@link complex}
 */
export function polar<D extends DType>(abs: Tensor<D>, angle: Tensor<D>): Tensor<ComplexFrom<D>>;
export function polar(...values: unknown[]): Tensor {
  const { abs, angle } = polarParameters(values);
  checkParts("polar", { abs, angle });
  return complexOf("polar", mul(abs, cos(angle)), mul(abs, sin(angle)));
}
const polarParameters = parameters("polar", { abs: operand(aTensor), angle: required(aTensor) });

function checkParts(operation: string, tensors: Readonly<Record<string, Tensor>>): void {
  const [first] = Object.values(tensors);
  for (const tensor of Object.values(tensors)) tensor.checkAlive(operation);
  const isKnown = first.dtype === "float32" || first.dtype === "float64";
  if (isKnown && Object.values(tensors).every(({ dtype }) => dtype === first.dtype)) return;
  const got = Object.entries(tensors).map(([name, tensor]) => `${name} ${tensor.describe()}`);
  throw new DTypeError(
    operation,
    isKnown ? "dtypesDiffer" : "notAFloat",
    `expected two tensors of float32 or of float64, got ${got.join(" and ")}; convert with toDType()`,
  );
}

/** Checks for a complex tensor. @throws {DTypeError} `notComplex` */
export function checkComplex(operation: string, x: Tensor): Tensor<ComplexDType> {
  if (isComplex(x.dtype)) return x as Tensor<ComplexDType>;
  throw new DTypeError(operation, "notComplex", `expected complex numbers, got ${x.describe()}`);
}

/**
 * Computes the angle of each complex number in radians, from −π to π. For real numbers it is 0, π for negative ones,
 * and NaN for NaN. The gradient at 0 is 0.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * angle(tensor([{ re: 0, im: 1 }, -1])); // float32 [1.5708, 3.1416]
 */
export function angle<D extends DType>(x: Tensor<D>): Tensor<RealOf<FloatOf<D>>>;
export function angle(...values: unknown[]): Tensor {
  const { x } = angleParameters(values);
  return underName("angle", () => (isComplexTensor(x) ? angleOfParts(x) : angleOfReal(x)));
}
angle.method = "angle" as const;
const angleParameters = parameters("angle", onePart);

const angleOfParts = (x: Tensor): Tensor => atan2(partOf("imag", x, 1), partOf("real", x, 0));

/** 0, π for negative numbers, NaN for NaN. */
function angleOfReal(x: Tensor): Tensor {
  const input = isFloat(x.dtype) ? x : toDType(x, "float32");
  return where(isnan(input), input, where(lt(input, 0), scalarTensor(Math.PI, input.dtype), mul(input, 0)));
}
