import type { DType } from "../../tensor/dtype.ts";
import { zerosLike } from "../creation/full.ts";
import { eq } from "./comparison.ts";
import { defineBinary } from "./define.ts";
import type { BinaryOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * Returns the next representable number after a toward b, for each pair of elements, with broadcasting; b if they are
 * equal, NaN if either is NaN. Integers become float32. The gradient goes to a where it differs from b. @see
 * {@link add}
 *
 * @example
 * nextafter(tensor([1, 1], { dtype: "float16" }), tensor([2, 0], { dtype: "float16" })); // float16 [1.00098, 0.999512]
 */
export const nextafter: BinaryOperation = defineBinary("nextafter", {
  takes: "floats",
  saves: "operands",
  reference: { floatOf: nextOf },
  gradient: (g, a, b, needs) => [needs[0] ? where(eq(a, b), 0, g) : null, needs[1] ? zerosLike(g) : null],
});

/** For each dtype: bits of the fraction, exponent of the smallest normal number, and the largest number. */
const formats: Readonly<Partial<Record<DType, readonly [bits: number, least: number, largest: number]>>> = {
  float64: [52, -1022, Number.MAX_VALUE],
  float32: [23, -126, (2 - 2 ** -23) * 2 ** 127],
  float16: [10, -14, 65504],
  bfloat16: [7, -126, (2 - 2 ** -7) * 2 ** 127],
};

function nextOf(a: number, b: number, dtype: DType): number {
  const [bits, least, largest] = formats[dtype]!;
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  if (a === b) return b;
  if (a === 0) return Math.sign(b) * 2 ** (least - bits);
  const magnitude = Math.abs(a);
  const rises = b > a === a > 0;
  if (magnitude === Number.POSITIVE_INFINITY) return Math.sign(a) * largest;
  if (rises && magnitude === largest) return Math.sign(a) * Number.POSITIVE_INFINITY;
  const exponent = Math.max(exponentOf(magnitude), least);
  const isAtStep = !rises && exponent > least && magnitude === 2 ** exponent; // the step below a power of 2 is halved
  const unit = 2 ** (exponent - bits - (isAtStep ? 1 : 0));
  return Math.sign(a) * (rises ? magnitude + unit : magnitude - unit);
}

const buffer = new DataView(new ArrayBuffer(8));

/** Returns ⌊log₂ x⌋; −1023 for numbers below the normal range of float64. */
function exponentOf(x: number): number {
  buffer.setFloat64(0, x);
  return (buffer.getUint16(0) >> 4) - 1023;
}
