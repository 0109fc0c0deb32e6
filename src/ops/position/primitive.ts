/** The primitive `rope`, with inputs x and optional positions. */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { array, dtype, flag, real, whole, wideWord } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Rotation } from "./frequencies.ts";

/**
 * Pair i of a row, (a, b), becomes magnitude · (a·cos φ − b·sin φ, a·sin φ + b·cos φ) with angle φ = frequencies[i] ·
 * (offset + the row's position). Elements after the pairs are unchanged. The gradient is the same with −φ.
 */
export interface RopeAttributes extends Rotation {
  /** If true, pairs are (2i, 2i + 1); otherwise (i, i + the number of pairs). */
  readonly interleaved: boolean;
  readonly offset: number;
}

/**
 * Maximum number of pairs: their phases and the other parameters must fit into the 4 KB of inline kernel parameters.
 */
export const MOST_PAIRS = 448;

export const ropeParameters = struct("Rope", {
  rows: loopNest,
  offset: whole,
  pairs: whole,
  step: whole,
  second: whole,
  stride: whole,
  outStride: whole,
  magnitude: real,
  phases: array(wideWord, MOST_PAIRS),
});

/**
 * `distinct` loops over the axes along which positions differ, with the strides of x, positions and output. `repeated`
 * loops over the axes along which they repeat, with the strides of x and output. The operand `cycles` has the frequency
 * of each pair in cycles per position, in float64.
 */
export const ropeCall = cpuCall(
  "rope",
  {
    dtype,
    interleaved: flag,
    pairs: whole,
    size: whole,
    stride: whole,
    outStride: whole,
    magnitude: real,
    offset: whole,
    hasPositions: flag,
    positionDtype: dtype,
    offsets: array(whole, 3),
    distinct: nest(3),
    repeated: nest(2),
  },
  ["x", "positions", "cycles", "output"],
);
