/** Normal random numbers that do not come from the library: mulberry32, and the Box–Muller transform. */
export function randomNumbers(count: number, seed: number): Float64Array {
  const uniform = mulberry32(seed);
  const values = new Float64Array(count);
  for (let at = 0; at < count; at++)
    values[at] = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return values;
}

/** Uniform numbers in [0, 1). */
export function mulberry32(seed: number): () => number {
  let state = (seed * 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
