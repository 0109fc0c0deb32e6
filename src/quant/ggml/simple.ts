/** Blocks of 32 values with one scale: q4_0, q4_1, q5_0, q5_1, q8_0. Lower nibbles hold the first 16 values. */
import type { BlockFormat } from "./block.ts";
import { halfAt, putHalf } from "./halves.ts";

const { fround, trunc } = Math;
const VALUES = 32;
const HALF = 16;

/** The value of largest magnitude, with its sign; the first one on ties. */
function extreme(values: Float32Array, from: number): number {
  let found = values[from];
  for (let i = 1; i < VALUES; i++) if (Math.abs(values[from + i]) > Math.abs(found)) found = values[from + i];
  return found;
}

/** 1 / scale in float32; 0 for 0. */
const inverse = (scale: number): number => (scale === 0 ? 0 : fround(1 / scale));

/** Truncates to a level between 0 and `most`; 0 if a tiny scale made the value infinite. */
const level = (value: number, most: number): number =>
  Number.isFinite(value) ? Math.min(Math.max(trunc(value), 0), most) : 0;

/** Computes centered levels: values are (q − center) · d, and the extreme value is −center · d. */
function centeredLevels(values: Float32Array, from: number, center: number, levels: Uint8Array): number {
  const scale = fround(extreme(values, from) / -center);
  const factor = inverse(scale);
  for (let i = 0; i < VALUES; i++)
    levels[i] = level(fround(fround(values[from + i] * factor) + center + 0.5), 2 * center - 1);
  return scale;
}

/** Computes levels above a minimum: values are q · d + m. */
function raisedLevels(values: Float32Array, from: number, most: number, levels: Uint8Array): [number, number] {
  let [low, high] = [values[from], values[from]];
  for (let i = 1; i < VALUES; i++) {
    low = Math.min(low, values[from + i]);
    high = Math.max(high, values[from + i]);
  }
  const scale = fround(fround(high - low) / most);
  const factor = inverse(scale);
  for (let i = 0; i < VALUES; i++)
    levels[i] = level(fround(fround(fround(values[from + i] - low) * factor) + 0.5), most);
  return [scale, low];
}

const levels = new Uint8Array(VALUES);

function putNibbles(bytes: Uint8Array, at: number): void {
  for (let i = 0; i < HALF; i++) bytes[at + i] = (levels[i] & 15) | ((levels[i + HALF] & 15) << 4);
}

function takeNibbles(bytes: Uint8Array, at: number): void {
  for (let i = 0; i < HALF; i++) {
    levels[i] = bytes[at + i] & 15;
    levels[i + HALF] = bytes[at + i] >> 4;
  }
}

/** Writes the fifth bits, one per value, in 4 bytes. */
function putFifthBits(bytes: Uint8Array, at: number): void {
  bytes.fill(0, at, at + 4);
  for (let i = 0; i < VALUES; i++) bytes[at + (i >> 3)] |= (levels[i] >> 4) << (i & 7);
}

function takeFifthBits(bytes: Uint8Array, at: number): void {
  for (let i = 0; i < VALUES; i++) levels[i] |= ((bytes[at + (i >> 3)] >> (i & 7)) & 1) << 4;
}

function centered(scale: number, center: number, out: Float32Array, to: number): void {
  for (let i = 0; i < VALUES; i++) out[to + i] = scale * (levels[i] - center);
}

function raised(scale: number, low: number, out: Float32Array, to: number): void {
  for (let i = 0; i < VALUES; i++) out[to + i] = fround(scale * levels[i]) + low;
}

const common = { values: VALUES, halves: [0] };

export const q4_0: BlockFormat = {
  ...common,
  bytes: 18,
  type: 2,
  unpack(bytes, at, out, to) {
    takeNibbles(bytes, at + 2);
    centered(halfAt(bytes, at), 8, out, to);
  },
  pack(values, from, bytes, at) {
    putHalf(bytes, at, centeredLevels(values, from, 8, levels));
    putNibbles(bytes, at + 2);
  },
};

export const q4_1: BlockFormat = {
  ...common,
  bytes: 20,
  type: 3,
  halves: [0, 2],
  unpack(bytes, at, out, to) {
    takeNibbles(bytes, at + 4);
    raised(halfAt(bytes, at), halfAt(bytes, at + 2), out, to);
  },
  pack(values, from, bytes, at) {
    const [scale, low] = raisedLevels(values, from, 15, levels);
    putHalf(bytes, at, scale);
    putHalf(bytes, at + 2, low);
    putNibbles(bytes, at + 4);
  },
};

export const q5_0: BlockFormat = {
  ...common,
  bytes: 22,
  type: 6,
  unpack(bytes, at, out, to) {
    takeNibbles(bytes, at + 6);
    takeFifthBits(bytes, at + 2);
    centered(halfAt(bytes, at), 16, out, to);
  },
  pack(values, from, bytes, at) {
    putHalf(bytes, at, centeredLevels(values, from, 16, levels));
    putFifthBits(bytes, at + 2);
    putNibbles(bytes, at + 6);
  },
};

export const q5_1: BlockFormat = {
  ...common,
  bytes: 24,
  type: 7,
  halves: [0, 2],
  unpack(bytes, at, out, to) {
    takeNibbles(bytes, at + 8);
    takeFifthBits(bytes, at + 4);
    raised(halfAt(bytes, at), halfAt(bytes, at + 2), out, to);
  },
  pack(values, from, bytes, at) {
    const [scale, low] = raisedLevels(values, from, 31, levels);
    putHalf(bytes, at, scale);
    putHalf(bytes, at + 2, low);
    putFifthBits(bytes, at + 4);
    putNibbles(bytes, at + 8);
  },
};

/** Rounds to the nearest integer in float32, ties away from zero. */
function roundAway(value: number): number {
  const size = Math.abs(value);
  const floor = Math.floor(size);
  return Math.sign(value) * (floor + Math.floor(2 * fround(size - floor)));
}

export const q8_0: BlockFormat = {
  ...common,
  bytes: 34,
  type: 8,
  unpack(bytes, at, out, to) {
    const scale = halfAt(bytes, at);
    for (let i = 0; i < VALUES; i++) out[to + i] = scale * ((bytes[at + 2 + i] << 24) >> 24);
  },
  pack(values, from, bytes, at) {
    const scale = fround(Math.abs(extreme(values, from)) / 127);
    const factor = inverse(scale);
    putHalf(bytes, at, scale);
    for (let i = 0; i < VALUES; i++) {
      const value = fround(values[from + i] * factor);
      bytes[at + 2 + i] = Number.isFinite(value) ? roundAway(value) & 255 : 0;
    }
  },
};
