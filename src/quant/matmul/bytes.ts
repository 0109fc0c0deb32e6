/** x in 8 bits, as llama.cpp's q8_0: the definition, which native/cpu/quant/fast.isa.cpp agrees with bit for bit. */

const PART = 32;
const SMALLEST = 2 ** -126; // of normal numbers
const { fround } = Math;
/** No bits below 1: what is added to it is rounded to the nearest whole number, to the even one of two. */
const SHIFT = 1.5 * 2 ** 23;

/**
 * Rounds rows of x in place: each 32 adjacent values of a row to levels of −127 to 127 of a scale, max|x| / 127 in
 * float32. They are 0 where the scale would be a denormal number, and NaN where one of them is not finite.
 */
export function roundParts(x: Float64Array, columns: number): void {
  for (let row = 0; row < x.length; row += columns)
    for (let first = 0; first < columns; first += PART)
      roundPart(x.subarray(row + first, row + Math.min(first + PART, columns)));
}

function roundPart(part: Float64Array): void {
  let most = 0;
  for (const value of part) most = Math.max(most, Math.abs(value)); // NaN where there is one
  if (!Number.isFinite(most)) {
    part.fill(Number.NaN);
    return;
  }
  const scale = fround(most / 127);
  const inverse = scale < SMALLEST ? 0 : fround(1 / scale);
  for (const [at, value] of part.entries())
    part[at] = inverse === 0 ? 0 : scale * fround(fround(fround(value * inverse) + SHIFT) - SHIFT);
}
