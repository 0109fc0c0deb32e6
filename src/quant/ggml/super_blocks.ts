/**
 * Super-blocks of 256 values in sub-blocks of 16 or 32, whose scales (and minima) are integers times a float16 of the
 * super-block: q2_K, q3_K, q4_K, q5_K, q6_K.
 */
import type { BlockFormat } from "./block.ts";
import { halfAt } from "./halves.ts";

const { fround } = Math;
const VALUES = 256;
const common = { values: VALUES, hasHalfScale: true };

/** Two bits of a value: 32 bytes hold 128 values, four layers of 32. */
const pairAt = (bytes: Uint8Array, at: number, i: number): number =>
  (bytes[at + (i >> 7) * 32 + (i & 31)]! >> (((i >> 5) & 3) * 2)) & 3;

/** The bit of a value: 32 bytes hold 256 values, eight layers of 32. */
const bitAt = (bytes: Uint8Array, at: number, i: number): number => (bytes[at + (i & 31)]! >> (i >> 5)) & 1;

/** Four bits of a value: 32 bytes hold 64 values, two layers of 32. */
const nibbleAt = (bytes: Uint8Array, at: number, i: number): number =>
  (bytes[at + (i >> 6) * 32 + (i & 31)]! >> (((i >> 5) & 1) * 4)) & 15;

export const q2_K: BlockFormat = {
  ...{ ...common, bytes: 84, type: 10 },
  unpack(bytes, at, out, to) {
    const [scale, minimum] = [halfAt(bytes, at + 80), halfAt(bytes, at + 82)];
    for (let i = 0; i < VALUES; i++) {
      const own = bytes[at + (i >> 4)]!;
      const low = fround(minimum * (own >> 4));
      out[to + i] = fround(fround(scale * (own & 15)) * pairAt(bytes, at + 16, i)) - low;
    }
  },
};

/** The scale of a sub-block of q3_K: its lower 4 bits in 8 bytes, its upper 2 in the 4 bytes after them. */
function sixBits(bytes: Uint8Array, at: number, sub: number): number {
  const low = (bytes[at + (sub & 7)]! >> ((sub >> 3) * 4)) & 15;
  const high = (bytes[at + 8 + (sub & 3)]! >> ((sub >> 2) * 2)) & 3;
  return (low | (high << 4)) - 32;
}

export const q3_K: BlockFormat = {
  ...{ ...common, bytes: 110, type: 11 },
  unpack(bytes, at, out, to) {
    const scale = halfAt(bytes, at + 108);
    for (let i = 0; i < VALUES; i++) {
      const own = fround(scale * sixBits(bytes, at + 96, i >> 4));
      out[to + i] = own * (pairAt(bytes, at + 32, i) - (bitAt(bytes, at, i) === 1 ? 0 : 4));
    }
  },
};

/** The scale and the minimum of a sub-block of q4_K and q5_K, 6 bits each, in 12 bytes. */
function scaleAndMinimum(bytes: Uint8Array, at: number, sub: number): [number, number] {
  const [scales, minima, rest] = [bytes[at + (sub & 3)]!, bytes[at + 4 + (sub & 3)]!, bytes[at + 8 + (sub & 3)]!];
  if (sub < 4) return [scales & 63, minima & 63];
  return [(rest & 15) | ((scales >> 2) & 48), (rest >> 4) | ((minima >> 2) & 48)];
}

/** Sub-blocks of 32 with a scale and a minimum. */
function unpackRaised(
  bytes: Uint8Array,
  at: number,
  out: Float32Array,
  to: number,
  levelAt: (i: number) => number,
): void {
  const [scale, minimum] = [halfAt(bytes, at), halfAt(bytes, at + 2)];
  for (let sub = 0; sub < 8; sub++) {
    const [ownScale, ownMinimum] = scaleAndMinimum(bytes, at + 4, sub);
    const [factor, low] = [fround(scale * ownScale), fround(minimum * ownMinimum)];
    for (let i = sub * 32; i < sub * 32 + 32; i++) out[to + i] = fround(factor * levelAt(i)) - low;
  }
}

export const q4_K: BlockFormat = {
  ...{ ...common, bytes: 144, type: 12 },
  unpack: (bytes, at, out, to) => unpackRaised(bytes, at, out, to, (i) => nibbleAt(bytes, at + 16, i)),
};

export const q5_K: BlockFormat = {
  ...{ ...common, bytes: 176, type: 13 },
  unpack: (bytes, at, out, to) =>
    unpackRaised(bytes, at, out, to, (i) => nibbleAt(bytes, at + 48, i) | (bitAt(bytes, at + 16, i) << 4)),
};

export const q6_K: BlockFormat = {
  ...{ ...common, bytes: 210, type: 14 },
  unpack(bytes, at, out, to) {
    const scale = halfAt(bytes, at + 208);
    for (let i = 0; i < VALUES; i++) {
      const own = fround(scale * ((bytes[at + 192 + (i >> 4)]! << 24) >> 24));
      const low = (bytes[at + (i >> 7) * 64 + (i & 63)]! >> (((i >> 6) & 1) * 4)) & 15;
      out[to + i] = own * ((low | (pairAt(bytes, at + 128, i) << 4)) - 32);
    }
  },
};
