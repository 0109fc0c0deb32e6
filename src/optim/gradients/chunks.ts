/** How work on many gradients is divided. */

/** Elements per partial sum of squares. How a gradient is divided depends only on its size. */
export const CHUNK = 16_384;

export const chunksOf = (count: number): number => Math.ceil(count / CHUNK);
