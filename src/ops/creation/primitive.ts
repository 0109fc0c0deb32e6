/** The primitives of creation: `fill`, `range` and `wholeRange`. */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { dtype, real, whole, wideWord } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Scalar } from "../../tensor/promotion.ts";

/** Attributes of `fill`, which writes one value to all elements of an output with any strides. */
export interface FillAttributes {
  readonly value: Scalar;
}

/**
 * Attributes of `range`: equally spaced floats, computed in float64 and rounded once: start + i · step for i < forward,
 * and end − (count − 1 − i) · step from there on, so that both ends are exact.
 */
export interface RangeAttributes {
  /** The dtype of the result. */
  readonly dtype: DType;
  readonly start: number;
  readonly step: number;
  readonly end: number;
  readonly forward: number;
}

/**
 * Attributes of `wholeRange`: equally spaced integers, start + i · step + i · remainder / divisor, computed exactly and
 * truncated toward zero. The absolute value of i · remainder must be below 2⁶³.
 */
export interface WholeRangeAttributes {
  readonly start: bigint;
  readonly step: bigint;
  readonly remainder: bigint;
  readonly divisor: bigint;
}

/** The value is passed as the bits of an element, so that every backend stores the same. */
export const fillParameters = struct("Fill", { loop: loopNest, bits: wideWord });
export const fillCall = cpuCall("fill", { bytes: whole, offset: whole, bits: wideWord, nest: nest(1) }, ["output"]);

/** Metal has no float64, so kernels compute with the bits of float64 numbers. */
export const rangeParameters = struct("Range", {
  start: wideWord,
  step: wideWord,
  end: wideWord,
  forward: whole,
  count: whole,
});
export const rangeCall = cpuCall(
  "range",
  { dtype, offset: whole, count: whole, start: real, step: real, end: real, forward: whole },
  ["output"],
);

const wholeRangeFields = { start: wideWord, step: wideWord, remainder: wideWord, divisor: wideWord, count: whole };

export const wholeRangeParameters = struct("WholeRange", wholeRangeFields);
export const wholeRangeCall = cpuCall("wholeRange", { dtype, offset: whole, ...wholeRangeFields }, ["output"]);
