/** `kernels/normalization/rows.h`: how threads share rows, and what kernels are given. */
import { metalTypeOf, startOf } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalizationOptions, normalizationParameters } from "./primitive.ts";
import { type NormalizationProblem, rowsOf } from "./problem.ts";

export const THREADS = 256;
/** Elements of a row that a thread holds. */
const HELD = 16;
/** Chunks of rows that are enough for every GPU. Each leaves a row of sums: more of them cost more memory. */
const CHUNKS = 512;
const LEAST_ROWS = 4;
/** Threads of long rows keep two sums for each row of their chunk in threadgroup memory. */
const MOST_ROWS = 1024;

/** How a call's rows are divided. */
export interface Division {
  /** Threads of a team. */
  readonly lanes: number;
  /** Whether a team holds a row, and so reads it once. */
  readonly fits: boolean;
  /** Rows that a team takes. */
  readonly chunk: number;
  readonly chunks: number;
  readonly threadgroups: number;
}

export function divide({ rows, length }: NormalizationProblem): Division {
  const lanes = length <= 32 * HELD ? 32 : THREADS;
  const chunk = Math.min(Math.max(Math.ceil(rows / CHUNKS), LEAST_ROWS), MOST_ROWS);
  const chunks = Math.ceil(rows / chunk);
  const threadgroups = Math.ceil((chunks * lanes) / THREADS);
  return { lanes, fits: length <= lanes * HELD, chunk, chunks, threadgroups };
}

/** The function constants: a bit for each operand that there is, and how threads share rows. */
export function constantsOf({ inputs, outputs }: NormalizationProblem, { lanes, fits }: Division): number[] {
  const operands = { ...inputs, ...outputs };
  const { names, ordinal } = normalizationOptions;
  const bits = names.reduce((sum, name) => sum + (operands[name] ? 2 ** ordinal(name) : 0), 0);
  return [bits, lanes, fits ? 1 : 0];
}

/** Host names end with the dtypes of rows and of weight and bias. */
export const typesOf = ({ inputs: { x }, vectorDType }: NormalizationProblem): string =>
  `${metalTypeOf(x.dtype)}_${metalTypeOf(vectorDType)}`;

/** @param operands up to three of the shape of x, in the order of the kernel */
export const parametersOf = (
  { inputs: { weight, bias }, eps }: NormalizationProblem,
  { chunk, chunks }: Division,
  operands: readonly Tensor[],
): Uint8Array =>
  normalizationParameters.bytes({
    rows: sliceValues(rowsOf(operands), operands),
    weightStart: weight ? startOf(weight) : 0,
    weightStride: weight?.strides[0] ?? 0,
    biasStart: bias ? startOf(bias) : 0,
    biasStride: bias?.strides[0] ?? 0,
    ...{ chunk, chunks, eps },
  });
