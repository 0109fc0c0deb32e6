/** Conversions of bfloat16, the upper half of a float32. Bits are stored in a `Uint16Array`. */

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** Converts the bits of a bfloat16 to its exact value. */
export function bfloat16ToNumber(half: number): number {
  bits[0] = half << 16;
  return float[0];
}

/**
 * Returns the bits of the bfloat16 nearest to a float64, ties to even. The intermediate float32 is rounded to odd, so
 * that rounding twice gives the same result as rounding once (Boldo and Melquiond, "Emulation of a FMA and correctly
 * rounded sums", 2008).
 */
export function numberToBfloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0;
  float[0] = value;
  const nearest = float[0];
  if (nearest !== value) {
    if (Math.abs(nearest) > Math.abs(value)) bits[0] = bits[0] - 1; // toward zero
    bits[0] = bits[0] | 1;
  }
  const word = bits[0];
  return ((word + 0x7fff + ((word >>> 16) & 1)) >>> 16) & 0xffff;
}
