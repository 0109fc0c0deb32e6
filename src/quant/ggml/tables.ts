/** Blocks of 32 values, each an entry of a 16-entry table times a scale: iq4_nl, mxfp4. */
import type { BlockFormat } from "./block.ts";
import { fitScale, levelsFor, type ToLevel } from "./fit.ts";
import { halfAt, halfPower, putHalf } from "./halves.ts";

const { fround } = Math;
const VALUES = 32;
const HALF = 16;

/** Levels that are denser near 0, where most weights are. */
export const IQ4_NL_LEVELS: readonly number[] = [
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/** The values of 4-bit floats (one sign, two exponent, one mantissa bit), doubled. */
export const MXFP4_LEVELS: readonly number[] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

function unpackLevels(
  bytes: Uint8Array,
  at: number,
  out: Float32Array,
  to: number,
  scale: number,
  table: readonly number[],
): void {
  for (let i = 0; i < HALF; i++) {
    out[to + i] = scale * table[bytes[at + i] & 15];
    out[to + i + HALF] = scale * table[bytes[at + i] >> 4];
  }
}

/** Returns the nearest level; the lower one on ties. */
const toTableLevel: ToLevel = (ratio) => {
  let found = 0;
  while (found < 15 && IQ4_NL_LEVELS[found + 1] - ratio < ratio - IQ4_NL_LEVELS[found]) found++;
  return IQ4_NL_LEVELS[found];
};

const scratch = new Int8Array(VALUES);
const indexOfLevel = new Map(IQ4_NL_LEVELS.map((level, index) => [level, index]));

export const iq4_nl: BlockFormat = {
  values: VALUES,
  bytes: 18,
  type: 20,
  halves: [0],
  unpack: (bytes, at, out, to) => unpackLevels(bytes, at + 2, out, to, halfAt(bytes, at), IQ4_NL_LEVELS),
  pack(values, from, bytes, at) {
    const block = values.subarray(from, from + VALUES);
    putHalf(bytes, at, fitScale(block, scratch, toTableLevel, IQ4_NL_LEVELS[0]));
    levelsFor(block, scratch, toTableLevel, halfAt(bytes, at)); // levels for the stored scale, in float16
    for (let i = 0; i < HALF; i++)
      bytes[at + 2 + i] = indexOfLevel.get(scratch[i])! | (indexOfLevel.get(scratch[i + HALF])! << 4);
  },
};

/**
 * Returns the exponent of a block: the exponent of its largest magnitude minus 2, in 8 bits, which wrap around below
 * 2⁻¹²⁵.
 */
const exponentOf = (largest: number): number =>
  largest > 0 ? (Math.floor(fround(Math.log2(largest))) - 2 + 127) & 255 : 0;

function nearestLevel(value: number, scale: number): number {
  let best = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const [at, level] of MXFP4_LEVELS.entries()) {
    const error = Math.abs(fround(fround(scale * level) - value));
    if (error < least) [best, least] = [at, error];
  }
  return best;
}

export const mxfp4: BlockFormat = {
  values: VALUES,
  bytes: 17,
  type: 39,
  halves: [],
  unpack: (bytes, at, out, to) => unpackLevels(bytes, at + 1, out, to, halfPower(bytes[at]), MXFP4_LEVELS),
  pack(values, from, bytes, at) {
    let largest = 0;
    for (let i = 0; i < VALUES; i++) largest = Math.max(largest, Math.abs(values[from + i]));
    const exponent = exponentOf(largest);
    const scale = halfPower(exponent);
    bytes[at] = exponent;
    for (let i = 0; i < HALF; i++) {
      const [low, high] = [values[from + i], values[from + i + HALF]];
      bytes[at + 1 + i] = nearestLevel(low, scale) | (nearestLevel(high, scale) << 4);
    }
  },
};
