/**
 * Stateless random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011), a function from a 128-bit counter and a 64-bit key to four 32-bit words. Every number of a tensor is a
 * function of its position. So it is bit-identical on every backend, in any layout, tiling and number of threads, and
 * can be recomputed instead of stored.
 *
 * Key: two words for each call of a random operation, from the generator's seed and the call's number (see {@link
 * callKey}).
 *
 * Counter, for element i of a tensor, counted row-major: (⌊i / 4⌋ mod 2³², ⌊i / 2³⁴⌋, 0, 0); the element's word w is
 * word i mod 4. An operation that draws along several axes uses them as words: the race of `multinomial` has
 * (⌊category / 4⌋, sample, row, 0).
 *
 * From words to numbers:
 *
 * | number | how |
 * |---|---|
 * | uniform float32 | (w >> 8) · 2⁻²⁴: 24 bits, in [0, 1) |
 * | uniform float16, bfloat16 | the float32, truncated to 11 or 8 significant bits: rounding down never gives 1 |
 * | uniform float64 | (w · 2²¹ + (l >> 11)) · 2⁻⁵³: 53 bits, in [0, 1) |
 * | normal | pairs of elements (0, 1) and (2, 3) of a block share two words: see `normal.ts` |
 * | integers of a range of n | ⌊(w · 2³² + l) · n / 2⁶⁴⌋: the probability of each is 1 / n, within 2⁻⁶⁴ |
 *
 * The lower word l is the same word of the counter (…, …, 1, 0).
 *
 * All float32 arithmetic uses single operations, each rounded once, with `fma` for a product plus a sum. Compilers have
 * nothing to contract, so a GPU gives the same bits.
 */

export const MULTIPLIERS = [0xd2511f53, 0xcd9e8d57] as const;
/** Added to the key after each round: the golden ratio and √3 − 1. */
export const WEYL = [0x9e3779b9, 0xbb67ae85] as const;
export const ROUNDS = 10;

/** Two 32-bit words. */
export type PhiloxKey = readonly [number, number];
/** Four 32-bit words. */
export type PhiloxCounter = readonly [number, number, number, number];

/** Computes the four words of a counter for a key, each in [0, 2³²). */
export function philox(counter: PhiloxCounter, key: PhiloxKey): [number, number, number, number] {
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(MULTIPLIERS[0], c0);
    const high1 = multiplyHigh(MULTIPLIERS[1], c2);
    const low0 = Math.imul(MULTIPLIERS[0], c0);
    const low1 = Math.imul(MULTIPLIERS[1], c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = (k0 + WEYL[0]) | 0;
    k1 = (k1 + WEYL[1]) | 0;
  }
  return [c0 >>> 0, c1 >>> 0, c2 >>> 0, c3 >>> 0];
}

/** The upper 32 bits of the product of two 32-bit words. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const cross = aLow * bHigh + (middle & 0xffff);
  return aHigh * bHigh + Math.floor(middle / 0x10000) + (cross >>> 16);
}

/** Returns the counter of a block of four elements. */
export const blockCounter = (block: number, stream = 0): PhiloxCounter => [
  block >>> 0,
  Math.floor(block / 2 ** 32),
  stream,
  0,
];

/** Returns the two halves of a 64-bit number, the lower first. */
export const splitWords = (value: bigint): [number, number] => [
  Number(value & 0xffffffffn),
  Number((value >> 32n) & 0xffffffffn),
];

/**
 * Computes the key of a generator's call: the first two words of the call's number as a counter, with the seed as the
 * key. All 128 bits of the counter remain available.
 */
export function callKey(seed: bigint, offset: bigint): PhiloxKey {
  const [low, high] = splitWords(offset);
  const [first, second] = philox([low, high, 0, 0], splitWords(seed));
  return [first, second];
}
