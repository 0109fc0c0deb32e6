/**
 * Super-blocks of 256 values in sub-blocks of 16 or 32, whose scales (and minima) are integers times a float16 scale of
 * the super-block: q2_K, q3_K, q4_K, q5_K, q6_K.
 */
import type { BlockFormat } from "./block.ts";
import { halfAt, putHalf } from "./halves.ts";
import { type CenteredRule, fitCenteredBlock, fitRaisedBlock, type RaisedRule } from "./super_fit.ts";

const { fround } = Math;
const VALUES = 256;

const valuesFrom = (values: Float32Array, from: number): Float32Array => values.subarray(from, from + VALUES);

const clear = (bytes: Uint8Array, at: number, count: number): void => void bytes.fill(0, at, at + count);

/** Reads the 2 bits of a value: 32 bytes hold 128 values, four layers of 32. */
const pairAt = (bytes: Uint8Array, at: number, i: number): number =>
  (bytes[at + (i >> 7) * 32 + (i & 31)] >> (((i >> 5) & 3) * 2)) & 3;

function putPair(bytes: Uint8Array, at: number, i: number, pair: number): void {
  bytes[at + (i >> 7) * 32 + (i & 31)] |= pair << (((i >> 5) & 3) * 2);
}

/** Reads the bit of a value: 32 bytes hold 256 values, eight layers of 32. */
const bitAt = (bytes: Uint8Array, at: number, i: number): number => (bytes[at + (i & 31)] >> (i >> 5)) & 1;

function putBit(bytes: Uint8Array, at: number, i: number, bit: number): void {
  bytes[at + (i & 31)] |= bit << (i >> 5);
}

/** Reads the 4 bits of a value: 32 bytes hold 64 values, two layers of 32. */
const nibbleAt = (bytes: Uint8Array, at: number, i: number): number =>
  (bytes[at + (i >> 6) * 32 + (i & 31)] >> (((i >> 5) & 1) * 4)) & 15;

function putNibble(bytes: Uint8Array, at: number, i: number, nibble: number): void {
  bytes[at + (i >> 6) * 32 + (i & 31)] |= nibble << (((i >> 5) & 1) * 4);
}

const q2Rule: RaisedRule = { size: 16, most: 3, scaleMost: 15 };

export const q2_K: BlockFormat = {
  values: VALUES,
  bytes: 84,
  type: 10,
  halves: [80, 82],
  unpack(bytes, at, out, to) {
    const [scale, minimum] = [halfAt(bytes, at + 80), halfAt(bytes, at + 82)];
    for (let i = 0; i < VALUES; i++) {
      const byte = bytes[at + (i >> 4)];
      const low = fround(minimum * (byte >> 4));
      out[to + i] = fround(fround(scale * (byte & 15)) * pairAt(bytes, at + 16, i)) - low;
    }
  },
  pack(values, from, bytes, at) {
    const { d, dmin, scales, minima, levels } = fitRaisedBlock(valuesFrom(values, from), q2Rule);
    clear(bytes, at, 84);
    for (let sub = 0; sub < 16; sub++) bytes[at + sub] = scales[sub] | (minima[sub] << 4);
    for (let i = 0; i < VALUES; i++) putPair(bytes, at + 16, i, levels[i]);
    putHalf(bytes, at + 80, d);
    putHalf(bytes, at + 82, dmin);
  },
};

/** Reads the scale of a sub-block of q3_K: its lower 4 bits are in 8 bytes, its upper 2 in the next 4 bytes. */
function sixBits(bytes: Uint8Array, at: number, sub: number): number {
  const low = (bytes[at + (sub & 7)] >> ((sub >> 3) * 4)) & 15;
  const high = (bytes[at + 8 + (sub & 3)] >> ((sub >> 2) * 2)) & 3;
  return (low | (high << 4)) - 32;
}

function putSixBits(bytes: Uint8Array, at: number, sub: number, scale: number): void {
  const raised = scale + 32;
  bytes[at + (sub & 7)] |= (raised & 15) << ((sub >> 3) * 4);
  bytes[at + 8 + (sub & 3)] |= (raised >> 4) << ((sub >> 2) * 2);
}

const q3Rule: CenteredRule = { size: 16, center: 4, scaleCenter: 32 };

export const q3_K: BlockFormat = {
  values: VALUES,
  bytes: 110,
  type: 11,
  halves: [108],
  unpack(bytes, at, out, to) {
    const scale = halfAt(bytes, at + 108);
    for (let i = 0; i < VALUES; i++) {
      const factor = fround(scale * sixBits(bytes, at + 96, i >> 4));
      out[to + i] = factor * (pairAt(bytes, at + 32, i) - (bitAt(bytes, at, i) === 1 ? 0 : 4));
    }
  },
  pack(values, from, bytes, at) {
    const { d, scales, levels } = fitCenteredBlock(valuesFrom(values, from), q3Rule);
    clear(bytes, at, 110);
    for (let i = 0; i < VALUES; i++) {
      putPair(bytes, at + 32, i, levels[i] & 3);
      putBit(bytes, at, i, levels[i] >= 0 ? 1 : 0);
    }
    for (const [sub, scale] of scales.entries()) putSixBits(bytes, at + 96, sub, scale);
    putHalf(bytes, at + 108, d);
  },
};

/** Reads the scale and the minimum of a sub-block of q4_K and q5_K, 6 bits each, in 12 bytes. */
function scaleAndMinimum(bytes: Uint8Array, at: number, sub: number): [number, number] {
  const [scales, minima, rest] = [bytes[at + (sub & 3)], bytes[at + 4 + (sub & 3)], bytes[at + 8 + (sub & 3)]];
  if (sub < 4) return [scales & 63, minima & 63];
  return [(rest & 15) | ((scales >> 2) & 48), (rest >> 4) | ((minima >> 2) & 48)];
}

function putScaleAndMinimum(bytes: Uint8Array, at: number, sub: number, scale: number, minimum: number): void {
  if (sub < 4) {
    bytes[at + sub] |= scale;
    bytes[at + 4 + sub] |= minimum;
    return;
  }
  bytes[at + 8 + (sub & 3)] = (scale & 15) | ((minimum & 15) << 4);
  bytes[at + (sub & 3)] |= (scale >> 4) << 6;
  bytes[at + 4 + (sub & 3)] |= (minimum >> 4) << 6;
}

/** Unpacks sub-blocks of 32 values with a scale and a minimum. */
function unpackRaised(
  bytes: Uint8Array,
  at: number,
  out: Float32Array,
  to: number,
  levelAt: (i: number) => number,
): void {
  const [scale, minimum] = [halfAt(bytes, at), halfAt(bytes, at + 2)];
  for (let sub = 0; sub < 8; sub++) {
    const [subScale, subMinimum] = scaleAndMinimum(bytes, at + 4, sub);
    const [factor, low] = [fround(scale * subScale), fround(minimum * subMinimum)];
    for (let i = sub * 32; i < sub * 32 + 32; i++) out[to + i] = fround(factor * levelAt(i)) - low;
  }
}

/** Packs scales and minima of sub-blocks of 32, and returns the levels, which the caller packs. */
function packRaised(values: Float32Array, from: number, bytes: Uint8Array, at: number, most: number): Uint8Array {
  const { d, dmin, scales, minima, levels } = fitRaisedBlock(valuesFrom(values, from), {
    size: 32,
    most,
    scaleMost: 63,
  });
  putHalf(bytes, at, d);
  putHalf(bytes, at + 2, dmin);
  for (let sub = 0; sub < 8; sub++) putScaleAndMinimum(bytes, at + 4, sub, scales[sub], minima[sub]);
  return levels;
}

export const q4_K: BlockFormat = {
  values: VALUES,
  bytes: 144,
  type: 12,
  halves: [0, 2],
  unpack: (bytes, at, out, to) => unpackRaised(bytes, at, out, to, (i) => nibbleAt(bytes, at + 16, i)),
  pack(values, from, bytes, at) {
    clear(bytes, at, 144);
    const levels = packRaised(values, from, bytes, at, 15);
    for (let i = 0; i < VALUES; i++) putNibble(bytes, at + 16, i, levels[i]);
  },
};

export const q5_K: BlockFormat = {
  values: VALUES,
  bytes: 176,
  type: 13,
  halves: [0, 2],
  unpack: (bytes, at, out, to) =>
    unpackRaised(bytes, at, out, to, (i) => nibbleAt(bytes, at + 48, i) | (bitAt(bytes, at + 16, i) << 4)),
  pack(values, from, bytes, at) {
    clear(bytes, at, 176);
    const levels = packRaised(values, from, bytes, at, 31);
    for (let i = 0; i < VALUES; i++) {
      putNibble(bytes, at + 48, i, levels[i] & 15);
      putBit(bytes, at + 16, i, levels[i] >> 4);
    }
  },
};

const q6Rule: CenteredRule = { size: 16, center: 32, scaleCenter: 128 };

export const q6_K: BlockFormat = {
  values: VALUES,
  bytes: 210,
  type: 14,
  halves: [208],
  unpack(bytes, at, out, to) {
    const scale = halfAt(bytes, at + 208);
    for (let i = 0; i < VALUES; i++) {
      const factor = fround(scale * ((bytes[at + 192 + (i >> 4)] << 24) >> 24));
      const low = (bytes[at + (i >> 7) * 64 + (i & 63)] >> (((i >> 6) & 1) * 4)) & 15;
      out[to + i] = factor * ((low | (pairAt(bytes, at + 128, i) << 4)) - 32);
    }
  },
  pack(values, from, bytes, at) {
    const { d, scales, levels } = fitCenteredBlock(valuesFrom(values, from), q6Rule);
    clear(bytes, at, 210);
    for (let i = 0; i < VALUES; i++) {
      const level = levels[i] + 32;
      bytes[at + (i >> 7) * 64 + (i & 63)] |= (level & 15) << (((i >> 6) & 1) * 4);
      putPair(bytes, at + 128, i, level >> 4);
    }
    for (const [sub, scale] of scales.entries()) bytes[at + 192 + sub] = scale & 255;
    putHalf(bytes, at + 208, d);
  },
};
