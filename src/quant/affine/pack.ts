/**
 * Levels are packed consecutively in 32-bit words, from the lowest bit on, as MLX does. 32 values of b bits take b
 * words.
 */

/** Packs levels into words. */
export function packLevels(levels: Uint8Array, bits: number, words: Uint32Array): void {
  let [filled, word, at] = [0, 0, 0];
  for (let i = 0; i < levels.length; i++) {
    const level = levels[i];
    word |= level << filled;
    filled += bits;
    if (filled < 32) continue;
    words[at++] = word >>> 0;
    filled -= 32;
    word = filled === 0 ? 0 : level >>> (bits - filled);
  }
}

/** Unpacks levels from words. */
export function unpackLevels(words: Uint32Array, bits: number, levels: Uint8Array): void {
  const mask = 2 ** bits - 1;
  for (let i = 0; i < levels.length; i++) {
    const first = i * bits;
    const [at, shift] = [first >>> 5, first & 31];
    const low = words[at] >>> shift;
    const high = shift + bits > 32 ? words[at + 1] << (32 - shift) : 0;
    levels[i] = (low | high) & mask;
  }
}
