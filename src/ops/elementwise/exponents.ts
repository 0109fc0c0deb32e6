/** Numbers as a mantissa times a power of two. */
import { underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat, isInteger } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { neg } from "./arithmetic.ts";
import { defineBinary, defineUnary } from "./define.ts";
import * as exact from "./exponents.reference.ts";
import type { BinaryOperation, FloatOf, FloatOperation } from "./types.ts";

/** Computes x · 2ᵏ for integers k, stored as floats. */
const timesPowerOfTwo: BinaryOperation = defineBinary("timesPowerOfTwo", {
  takes: "floats",
  isPublic: false,
  saves: "operands",
  reference: { float: exact.timesPowerOfTwo },
  gradient: (g, _x, k, needs) => [needs[0] ? timesPowerOfTwo(g, k) : null, null],
});

/**
 * Computes x · 2ᵏ for each element, exactly unless the result is subnormal. Shapes broadcast.
 *
 * @param x of any real dtype; integers and bools become float32
 * @param k of an integer dtype
 *
 * @example
 * ldexp(tensor([0.5, 3]), tensor([4, -1], { dtype: "int32" })); // float32 [8, 1.5]
 *
 * @throws {DTypeError} if `k` is not of an integer dtype. @throws {ShapeError} if the shapes can't be broadcast
 * together.
 */
export function ldexp<D extends DType>(x: Tensor<D>, k: Tensor): Tensor<FloatOf<D>>;
export function ldexp(...values: unknown[]): Tensor {
  const { x, k } = ldexpParameters(values);
  if (!isInteger(k.dtype))
    throw new DTypeError("ldexp", "notAnInteger", `expected k to have an integer dtype, got ${k.describe()}`);
  return underName("ldexp", () => {
    const dtype = floatOf("ldexp", x);
    const wide: Tensor = toDType(x, accumulationDType(dtype));
    return toDType(timesPowerOfTwo(wide, toDType(k, wide.dtype)), dtype);
  });
}
ldexp.method = "float" as const;
const ldexpParameters = parameters("ldexp", { x: operand(aTensor), k: required(aTensor) });

/**
 * Returns the dtype of the result: the operand's for floats, float32 for integers and bools. @throws {DTypeError} for
 * complex numbers
 */
function floatOf(operation: string, { dtype }: Tensor): DType {
  if (isFloat(dtype)) return dtype;
  if (isInteger(dtype) || dtype === "bool") return "float32";
  throw new DTypeError(operation, "complex", `expected real numbers, got ${dtype}`);
}

/** The result of {@link frexp}. */
export interface Frexp<D extends DType = DType> {
  /** Between 0.5 and 1 in absolute value; 0, infinity and NaN themselves. */
  readonly mantissa: Tensor<D>;
  /** int32; 0 for 0, infinity and NaN. */
  readonly exponent: Tensor<"int32">;
}

/**
 * Decomposes each element into a mantissa and an exponent: x = mantissa · 2^exponent, exactly. The gradient flows
 * through the mantissa.
 *
 * @param x of a float dtype
 * @returns mantissa and exponent, both of x's shape
 *
 * @example
 * frexp(tensor([8, -3, 0])); // { mantissa: [0.5, -0.75, 0], exponent: [4, 2, 0] }
 *
 * @throws {DTypeError} if `x` does not have a float dtype.
 */
export function frexp<D extends DType>(x: Tensor<D>): Frexp<D>;
export function frexp(...values: unknown[]): Frexp {
  const { x } = frexpParameters(values);
  if (!isFloat(x.dtype)) throw new DTypeError("frexp", "notAFloat", `expected a float dtype, got ${x.describe()}`);
  return underName("frexp", () => tidy(() => ({ mantissa: mantissaOf(x), exponent: toDType(exponentOf(x), "int32") })));
}
frexp.method = "declared" as const;
const frexpParameters = parameters("frexp", { x: operand(aTensor) });

/** The exponents as floats. Every float dtype represents the exponents of its numbers. */
const exponentOf: FloatOperation = defineUnary("frexpExponent", {
  takes: "floats",
  isPublic: false,
  reference: { float: exact.exponentOf },
});

const mantissaOf: FloatOperation = defineUnary("frexpMantissa", {
  takes: "floats",
  isPublic: false,
  saves: "input",
  reference: { float: (x) => exact.timesPowerOfTwo(x, -exact.exponentOf(x)) },
  gradient: (g, x) => timesPowerOfTwo(g, neg(exponentOf(x))),
});
