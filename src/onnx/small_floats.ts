/**
 * Floats of up to 8 bits, which have no dtype. Their values are stored in float32; casts to them round.
 *
 * Source: https://onnx.ai/onnx/technical/float8.html, https://onnx.ai/onnx/technical/float4.html; E8M0: the OCP's
 * Microscaling Formats, version 1.0.
 */
import * as ops from "../ops/index.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** A format: the bits of its exponent and mantissa, and the meaning of its largest codes. */
export interface SmallFloat {
  readonly exponent: number;
  readonly mantissa: number;
  readonly bias: number;
  /** The largest finite value. */
  readonly most: number;
  /** The meaning of codes above the largest finite value. `minusZero`: the code of −0 is NaN, and no others are. */
  readonly special: "infinity" | "allOnes" | "minusZero" | "none";
}

export const smallFloats: Readonly<Record<string, SmallFloat>> = {
  float4e2m1: { exponent: 2, mantissa: 1, bias: 1, most: 6, special: "none" },
  float8e4m3fn: { exponent: 4, mantissa: 3, bias: 7, most: 448, special: "allOnes" },
  float8e4m3fnuz: { exponent: 4, mantissa: 3, bias: 8, most: 240, special: "minusZero" },
  float8e5m2: { exponent: 5, mantissa: 2, bias: 15, most: 57344, special: "infinity" },
  float8e5m2fnuz: { exponent: 5, mantissa: 2, bias: 16, most: 57344, special: "minusZero" },
};

/** Returns the value of a code. */
export function smallFloatValue(format: SmallFloat, code: number): number {
  const { exponent, mantissa, bias, special } = format;
  const bits = exponent + mantissa;
  const [sign, magnitude] = [code >> bits ? -1 : 1, code & (2 ** bits - 1)];
  const [power, fraction] = [magnitude >> mantissa, magnitude & (2 ** mantissa - 1)];
  if (special === "minusZero" && code === 2 ** bits) return Number.NaN;
  if (special === "allOnes" && magnitude === 2 ** bits - 1) return Number.NaN;
  if (special === "infinity" && power === 2 ** exponent - 1) return fraction === 0 ? sign * Infinity : Number.NaN;
  const scaled = power === 0 ? fraction * 2 ** (1 - mantissa) : (fraction + 2 ** mantissa) * 2 ** (power - mantissa);
  return sign * scaled * 2 ** -bias;
}

/** Returns the value of an E8M0 code, which is only an exponent. */
export const e8m0Value = (code: number): number => (code === 255 ? Number.NaN : 2 ** (code - 127));

/**
 * Rounds to the nearest value of a format, ties to even, in float32.
 *
 * @param saturate whether values out of range become the largest finite value instead of infinity or NaN
 */
export function roundedTo(format: SmallFloat, given: Tensor, saturate: boolean): Tensor {
  const { mantissa, bias, most, special } = format;
  const x = given.to("float32");
  const { exponent: power } = ops.frexp(x); // |x| is in [2^(power − 1), 2^power)
  const place = ops.sub(ops.clamp(power, { min: 2 - bias }), mantissa + 1);
  const step = ops.ldexp(ops.onesLike(x), place);
  const near = ops.mul(ops.round(ops.div(x, step)), step);
  const isBeyond = ops.logicalOr(ops.gt(ops.abs(near), most), ops.isinf(x));
  const sign = ops.sign(x);
  const largest = ops.mul(sign, most);
  const beyond = special === "infinity" ? ops.mul(sign, Infinity) : ops.mul(ops.zerosLike(x), Number.NaN);
  const finite = ops.where(isBeyond, saturate || special === "none" ? largest : beyond, near);
  const kept = ops.where(ops.isnan(x), special === "none" ? ops.zerosLike(x) : x, finite);
  return special === "minusZero" ? ops.add(kept, 0) : kept;
}

/** Rounds magnitudes to powers of two from 2^−127 to 2^127. */
export function powerOfTwo(given: Tensor, mode: string, saturate: boolean): Tensor {
  const x = ops.abs(given.to("float32"));
  const { mantissa, exponent } = ops.frexp(x); // the mantissa is in [0.5, 1)
  const below = ops.sub(exponent.to("float32"), 1);
  const isUp = mode === "up" ? ops.gt(mantissa, 0.5) : ops.ge(mantissa, 0.75);
  const chosen = mode === "down" ? below : ops.add(below, isUp.to("float32"));
  const place = ops.where(ops.eq(x, 0), ops.full(x.shape, -127), ops.clamp(chosen, { min: -127 }));
  const limited = saturate ? ops.clamp(place, { max: 127 }) : place;
  const isUndefined = ops.logicalOr(ops.logicalOr(ops.isnan(x), ops.isinf(x)), ops.gt(limited, 127));
  return ops.where(isUndefined, ops.full(x.shape, Number.NaN), ops.ldexp(ops.onesLike(x), limited.to("int32")));
}
