/** Numbers as a mantissa times a power of two. */
import { noGrad } from "../../autograd/modes.ts";
import { underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat, isInteger } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { take } from "../indexing/take.ts";
import { abs, add, mul, sub } from "./arithmetic.ts";
import { clamp } from "./clamp.ts";
import { ge, gt, lt } from "./comparison.ts";
import { floorDivide } from "./division.ts";
import { log2 } from "./logarithm.ts";
import { logicalAnd } from "./logic.ts";
import { isfinite } from "./predicates.ts";
import { floor } from "./rounding.ts";
import type { FloatOf } from "./types.ts";
import { where } from "./where.ts";

/** The exponents of the smallest and the largest power of two of a dtype. */
const ranges = { float32: [-149, 127], float64: [-1074, 1023] } as const;

/** 2ᵏ for integers k, exactly: a backend's exponential may round. Powers out of range become the nearest one. */
function powerOfTwo(k: Tensor, dtype: "float32" | "float64"): Tensor {
  const [lowest, highest] = ranges[dtype];
  const powers = Float64Array.from({ length: highest - lowest + 1 }, (_, at) => 2 ** (lowest + at));
  const index = toDType(sub(clamp(k, { min: lowest, max: highest }), lowest) as Tensor, "int64");
  return take(tensor(powers, { dtype }), index as Tensor<"int64">) as Tensor;
}

/** x · 2ᵏ for integers k, in two steps, since 2ᵏ may be out of range where the product is not. */
function scaledBy(x: Tensor, k: Tensor): Tensor {
  const dtype = x.dtype as "float32" | "float64";
  const [first, second] = noGrad(() => {
    const half = floorDivide(k, 2) as Tensor;
    return [half, sub(k, half) as Tensor].map((part) => powerOfTwo(part, dtype)) as [Tensor, Tensor];
  });
  return mul(mul(x, first), second) as Tensor;
}

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
    return toDType(scaledBy(toDType(x, accumulationDType(dtype)), toDType(k, "int32")), dtype);
  });
}
ldexp.method = "float" as const;
const ldexpParameters = parameters("ldexp", { x: operand(aTensor), k: required(aTensor) });

/** The dtype of the result: that of floats, float32 for integers and bools. @throws {DTypeError} for complex numbers */
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
 * Decomposes each element into a mantissa and an exponent: x = mantissa · 2^exponent, exactly. The gradient flows through
 * the mantissa.
 *
 * @param x of a float dtype
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
  const { dtype } = x;
  return underName("frexp", () =>
    tidy(() => {
      const wide = toDType(x, accumulationDType(dtype)) as Tensor;
      const exponent = noGrad(() => exponentOf(wide));
      const mantissa = scaledBy(wide, sub(0, exponent) as Tensor);
      return { mantissa: toDType(mantissa, dtype), exponent: exponent as Tensor<"int32"> };
    }),
  );
}
const frexpParameters = parameters("frexp", { x: operand(aTensor) });

/** The exponents as int32. The logarithm is corrected by a comparison, since it may round up to the next integer. */
function exponentOf(x: Tensor): Tensor {
  const [lowest] = ranges[x.dtype as "float32" | "float64"];
  const size = abs(x) as Tensor;
  const isUsual = logicalAnd(gt(size, 0), isfinite(size));
  const isTiny = lt(size, 2 ** (lowest / 2));
  const lift = -Math.floor(lowest / 2);
  const raised = where(isUsual, where(isTiny, mul(size, 2 ** lift), size), 1) as Tensor;
  const first = add(toDType(floor(log2(raised)) as Tensor, "int32"), 1) as Tensor;
  const mantissa = scaledBy(raised, sub(0, first) as Tensor);
  const corrected = where(ge(mantissa, 1), add(first, 1), where(lt(mantissa, 0.5), sub(first, 1), first)) as Tensor;
  const zero = mul(first, 0) as Tensor;
  return toDType(where(isUsual, where(isTiny, sub(corrected, lift), corrected), zero) as Tensor, "int32");
}
