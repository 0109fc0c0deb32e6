/**
 * Rounds x to 8 bits, as llama.cpp's q8_0. This is the reference; native/cpu/quant/fast.isa.cpp matches it exactly.
 */

const PART = 32;
const SMALLEST = 2 ** -126; // the smallest normal number
const { fround } = Math;
/**
 * A float32 of this size has no fractional bits, so adding it to a number rounds the number to the nearest integer,
 * ties to even.
 */
const SHIFT = 1.5 * 2 ** 23;

/**
 * Rounds rows of x in place. Each 32 adjacent values of a row become levels from −127 to 127 times the scale
 * max|x| / 127 in float32. They become 0 if the scale would be subnormal, and NaN if one of them is not finite.
 */
export function roundParts(x: Float64Array, columns: number): void {
  for (let row = 0; row < x.length; row += columns)
    for (let first = 0; first < columns; first += PART)
      roundPart(x.subarray(row + first, row + Math.min(first + PART, columns)));
}

function roundPart(part: Float64Array): void {
  let most = 0;
  for (const value of part) most = Math.max(most, Math.abs(value)); // NaN if any value is
  if (!Number.isFinite(most)) {
    part.fill(Number.NaN);
    return;
  }
  const scale = fround(most / 127);
  const inverse = scale < SMALLEST ? 0 : fround(1 / scale);
  for (const [at, value] of part.entries())
    part[at] = inverse === 0 ? 0 : scale * fround(fround(fround(value * inverse) + SHIFT) - SHIFT);
}
