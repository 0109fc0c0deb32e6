/** How work on many gradients is divided. */

/** As many as Metal has room for: it binds 31 buffers, and a product takes two beside the factor and the numbers. */
export const MOST_GRADIENTS = 14;

/** Adjacent elements of a gradient whose squares make one sum. What a sum is depends on sizes only. */
export const CHUNK = 16_384;

export const chunksOf = (count: number): number => Math.ceil(count / CHUNK);

/** Fourteen operands: what a call has, and then something that is not looked at. */
export const fourteen = <T>(present: readonly T[], filler: T): Fourteen<T> =>
  Array.from({ length: MOST_GRADIENTS }, (_, index) => present[index] ?? filler) as Fourteen<T>;

type Fourteen<T> = [T, T, T, T, T, T, T, T, T, T, T, T, T, T];
