import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole, word } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The parts of A = U Σ Vᵀ that are computed. */
export interface SvdAttributes {
  /** Whether singular vectors are computed, or only singular values. */
  readonly vectors: boolean;
  /** Whether U and V are square. */
  readonly full: boolean;
}

/** The results of a call: U, the singular values, Vᵀ and `info`, one {@link SvdInfo} per matrix. */
export interface SvdOutputs {
  readonly u: Tensor | undefined;
  readonly s: Tensor;
  readonly vh: Tensor | undefined;
  readonly info: Tensor;
}

/** The status of a matrix: `SvdInfo` in native/cpu/linalg/svd.h and kernels/linalg/svd.metal. */
export const SvdInfo = { done: 0, notFinite: 1, notConverged: 2 } as const;

export function svdOutputs(outputs: readonly Tensor[], { vectors }: SvdAttributes): SvdOutputs {
  if (vectors) return { u: outputs[0], s: outputs[1], vh: outputs[2], info: outputs[3] };
  return { u: undefined, s: outputs[0], vh: undefined, info: outputs[1] };
}

const svdFields = { batch: whole, rows: whole, columns: whole, vectors: flag, full: flag };
export const svdCall = cpuCall("svd", { dtype, ...svdFields }, ["a", "u", "s", "vh", "info"]);
export const svdParameters = struct("Svd", svdFields);
/** Parameters of the kernels for matrices larger than threadgroup memory. */
export const svdBlocksParameters = struct("SvdBlocks", {
  ...svdFields,
  block: word,
  blocks: word,
  round: word,
});
/** Parameters of the kernels that run before and after the decomposition of a triangle. */
export const svdTallParameters = struct("SvdTall", {
  batch: whole,
  large: whole,
  small: whole,
  width: whole,
  isTall: flag,
});
export const svdSignsParameters = struct("SvdSigns", {
  rows: whole,
  columns: whole,
  first: whole,
  partners: whole,
  length: whole,
  all: whole,
});
