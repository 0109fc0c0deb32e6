/** `kernels/normalization/rows.h`: how threads share rows, and what kernels are told of a call. */
import { metalTypeOf, startOf } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { lineParameters } from "../scan/scan.metal.ts";
import { type InputName, type NormalizationProblem, type OutputName, rowsOf } from "./problem.ts";

export const THREADS = 256;
/** Elements of a row that a thread holds. */
const HELD = 16;
/** Chunks of rows that are enough for every GPU; each leaves a row of sums, so that there had better not be many. */
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

/** Bits of `OPTIONS`: what a call has beside its rows. */
const options: readonly (InputName | OutputName)[] = [
  ...(["mean", "residual", "weight", "bias", "gradSum", "gradX", "gradWeight", "gradBias"] as const),
];

/** The function constants. */
export function constantsOf({ inputs, outputs }: NormalizationProblem, { lanes, fits }: Division): number[] {
  const operands = { ...inputs, ...outputs };
  const bits = options.reduce((sum, name, bit) => sum + (operands[name as InputName] ? 2 ** bit : 0), 0);
  return [bits, lanes, fits ? 1 : 0];
}

/** Host names end with the dtypes of rows and of weight and bias. */
export const typesOf = ({ inputs: { x }, vectorDType }: NormalizationProblem): string =>
  `${metalTypeOf(x.dtype)}_${metalTypeOf(vectorDType)}`;

const TAIL_WORDS = 7;

/** `Normalization`. @param operands up to three of the shape of x, in the order of the kernel */
export function parametersOf(
  { inputs: { weight, bias }, eps }: NormalizationProblem,
  { chunk, chunks }: Division,
  operands: readonly Tensor[],
): Uint8Array {
  const lines = lineParameters(operands, rowsOf(operands));
  const bytes = new Uint8Array(lines.length + TAIL_WORDS * 8);
  bytes.set(lines);
  const words = new BigInt64Array(bytes.buffer, lines.length, TAIL_WORDS);
  const vectors = [weight, bias].flatMap((vector) => (vector ? [startOf(vector), vector.strides[0]!] : [0, 0]));
  words.set([...vectors, chunk, chunks].map(BigInt));
  new Float32Array(bytes.buffer, lines.length + (TAIL_WORDS - 1) * 8)[0] = eps;
  return bytes;
}
