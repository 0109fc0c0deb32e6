/** Tensors as JSON. */
import { ArgumentError } from "../core/errors.ts";
import type { Complex, DType } from "./dtype.ts";
import type { NestedArray, Tensor } from "./tensor.ts";

/**
 * A tensor in JSON. Values without a JSON number are strings: `"NaN"`, `"Infinity"`, `"-Infinity"`, and integers of 2⁵³
 * and more. A complex number is a list of its real and its imaginary part.
 */
export interface TensorJson {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: NestedArray<number | boolean | string>;
}

/** A larger tensor is probably passed to JSON by mistake. */
const MOST_ELEMENTS = 1_000_000;

export function jsonOf(x: Tensor): TensorJson {
  if (x.size > MOST_ELEMENTS)
    throw new ArgumentError(
      "toJSON",
      "tooLarge",
      `expected at most ${MOST_ELEMENTS} elements, got ${x.describe()}; io.saveSafetensors writes large tensors`,
    );
  return { dtype: x.dtype, shape: x.shape, data: plain(x.toArray()) };
}

type Element = number | bigint | boolean | Complex;

function plain(value: NestedArray<Element>): NestedArray<number | boolean | string> {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "boolean") return value;
  if (typeof value === "object") return [value.re, value.im].map(plain);
  const number = Number(value);
  const isExact = typeof value === "bigint" ? Number.isSafeInteger(number) : Number.isFinite(number);
  return isExact ? number : String(value);
}
