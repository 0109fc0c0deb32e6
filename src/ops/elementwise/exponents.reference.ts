/** Mantissas, exponents and powers of two in float64, exactly. */

const buffer = new DataView(new ArrayBuffer(8));
const SMALLEST_NORMAL = 2 ** -1022;
const LIFT = 64; // makes subnormal numbers normal

/** Computes the exponent e with x = m · 2ᵉ and ½ ≤ |m| < 1; 0 for 0, infinity and NaN. */
export function exponentOf(x: number): number {
  if (x === 0 || !Number.isFinite(x)) return 0;
  const isSubnormal = Math.abs(x) < SMALLEST_NORMAL;
  buffer.setFloat64(0, isSubnormal ? x * 2 ** LIFT : x);
  return ((buffer.getUint16(0) >> 4) & 0x7ff) - 1022 - (isSubnormal ? LIFT : 0);
}

/** Computes x · 2ᵏ for an integer k, in steps, since 2ᵏ may be out of range where the product is not. */
export function timesPowerOfTwo(x: number, k: number): number {
  const limited = Math.min(2200, Math.max(-2200, k));
  const part = Math.abs(limited) <= 1022 ? 0 : Math.trunc(limited / 3);
  return x * 2 ** part * 2 ** part * 2 ** (limited - 2 * part);
}
