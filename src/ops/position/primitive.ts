/** The primitive `rope`: of x, and of positions where there are some. */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { array, dtype, flag, real, whole, wideWord } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Rotation } from "./frequencies.ts";

/**
 * Pair i of a row, (a, b), becomes magnitude · (a·cos φ − b·sin φ, a·sin φ + b·cos φ) with φ = frequencies[i] ·
 * (offset + the row's position). What lies behind the pairs stays. The gradient is the same with −φ.
 */
export interface RopeAttributes extends Rotation {
  /** Pairs are (2i, 2i + 1), else (i, i + the number of pairs). */
  readonly interleaved: boolean;
  readonly offset: number;
}

/** Pairs whose phases fit beside the other parameters into the 4 KB that a kernel is given inline. */
export const MOST_PAIRS = 448;

export const ropeParameters = struct("Rope", "position/rope.metal", {
  rows: loopNest,
  ...{ offset: whole, pairs: whole, step: whole, second: whole, stride: whole, outStride: whole },
  magnitude: real,
  phases: array(wideWord, MOST_PAIRS),
});

/**
 * The axes along which positions differ are `distinct`: x, positions, output; those along which they repeat are
 * `repeated`: x, output. The operand `cycles` has the frequency of each pair in cycles a position, in float64.
 */
export const ropeCall = cpuCall(
  "rope",
  {
    ...{ dtype, interleaved: flag, pairs: whole, size: whole, stride: whole, outStride: whole, magnitude: real },
    ...{ offset: whole, hasPositions: flag, positionDtype: dtype },
    ...{ offsets: array(whole, 3), distinct: nest(3), repeated: nest(2) },
  },
  ["x", "positions", "cycles", "output"],
);
