/** How work on many gradients is divided. */

/** Adjacent elements of a gradient whose squares make one sum. What a sum is depends on sizes only. */
export const CHUNK = 16_384;

export const chunksOf = (count: number): number => Math.ceil(count / CHUNK);
