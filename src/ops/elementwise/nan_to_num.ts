import { underName } from "../../backend/dispatch.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isComplex, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { complexOf, imag, real } from "../complex/parts.ts";
import { clone } from "../copy/copy.ts";
import { abs } from "./arithmetic.ts";
import { eq, le } from "./comparison.ts";
import { defineTernary, type Ternary } from "./define.ts";
import { scalarTensor } from "./operands.ts";
import { where } from "./where.ts";

/** Replaces NaN by `nan`, and clamps numbers to ±`most`. */
const replaceNonfinite: Ternary = defineTernary("nanToNum", {
  reference: { float: (x, nan, most) => (Number.isNaN(x) ? nan : Math.min(Math.max(x, -most), most)) },
  gradient: (g, [x, , most]) => [where(le(abs(x), most), g, 0), null, null],
});

/** Options of {@link nanToNum}. */
export interface NanToNumOptions {
  /** Replacement of NaN. Default 0. */
  nan?: number | undefined;
  /** Replacement of ∞. Default: the largest number of the dtype. */
  posinf?: number | undefined;
  /** Replacement of −∞. Default: the smallest number of the dtype. */
  neginf?: number | undefined;
}

/** The largest number of each float dtype. */
const LARGEST: Readonly<Partial<Record<DType, number>>> = {
  float64: Number.MAX_VALUE,
  float32: (2 - 2 ** -23) * 2 ** 127,
  float16: 65504,
  bfloat16: (2 - 2 ** -7) * 2 ** 127,
};

/**
 * Replaces NaN and infinities by numbers. The gradient of a replaced element is 0.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * nanToNum(tensor([1, Number.NaN, Infinity]), { posinf: 9 }); // float32 [1, 0, 9]
 */
export function nanToNum<D extends DType>(
  x: Tensor<D>,
  ...options: Given<NanToNumOptions, ["nan", "posinf", "neginf"]>
): Tensor<D>;
export function nanToNum(...values: unknown[]): Tensor {
  const { x, nan, posinf, neginf } = nanToNumParameters(values);
  if (isComplex(x.dtype)) {
    const part = (own: Tensor): Tensor => nanToNum(own, { nan, posinf, neginf });
    return complexOf("nanToNum", part(real(x)), part(imag(x)));
  }
  if (!isFloat(x.dtype)) return clone(x);
  const largest = LARGEST[x.dtype]!;
  const isSymmetric = posinf === undefined && neginf === undefined;
  const [by, most] = [nan, isSymmetric ? largest : Number.POSITIVE_INFINITY].map((one) => scalarTensor(one, x.dtype));
  return underName("nanToNum", () =>
    tidy(() => {
      const numbers = replaceNonfinite([x, by!, most!]);
      if (isSymmetric) return numbers;
      const above = where(eq(numbers, Number.POSITIVE_INFINITY), posinf ?? largest, numbers);
      return where(eq(above, Number.NEGATIVE_INFINITY), neginf ?? -largest, above);
    }),
  );
}
nanToNum.method = "same" as const;
const nanToNumParameters = parameters("nanToNum", {
  x: operand(aTensor),
  nan: optional(someNumber, 0),
  posinf: optional(someNumber),
  neginf: optional(someNumber),
});
