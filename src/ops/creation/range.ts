import type { Primitive } from "../../backend/backend.ts";
import type { DType } from "../../tensor/dtype.ts";
import { rangeCpu, wholeRangeCpu } from "./range.cpu.ts";
import { rangeMetal, wholeRangeMetal } from "./range.metal.ts";
import { rangeReference, wholeRangeReference } from "./range.reference.ts";

/**
 * Points of a line in a float dtype, computed in float64 and rounded once: start + i · step for i < turn, and end − (count − 1 − i) · step
 * from there on, so that both ends are exact.
 */
export interface RangeAttributes {
  /** Of the result. */
  readonly dtype: DType;
  readonly start: number;
  readonly step: number;
  readonly end: number;
  readonly turn: number;
}

/** Points of a line in an integer dtype: start + i · step + i · rest / divisor, cut towards zero, exact. |i · rest| < 2⁶³. */
export interface WholeRangeAttributes {
  readonly start: bigint;
  readonly step: bigint;
  readonly rest: bigint;
  readonly divisor: bigint;
}

export const rangePrimitive: Primitive<RangeAttributes> = {
  name: "range",
  implementations: { metal: rangeMetal, cpu: rangeCpu, reference: rangeReference },
};

export const wholeRangePrimitive: Primitive<WholeRangeAttributes> = {
  name: "wholeRange",
  implementations: { metal: wholeRangeMetal, cpu: wholeRangeCpu, reference: wholeRangeReference },
};
