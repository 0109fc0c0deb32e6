/** Division of rows among threads, and parameters of `kernels/normalization/rows.h`. */

import { metalTypeOf, startOf } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalizationOptions, normalizationParameters } from "./primitive.ts";
import { type NormalizationProblem, rowsOf } from "./problem.ts";

/** Threads in a SIMD-group, and SIMD-groups in a threadgroup, each with one row: `TEAMS` of the kernel. */
const LANES = 32;
const TEAMS = 4;

/** A team that holds rows of up to lanes · count elements: its threads, and the elements each holds. */
interface Team {
  readonly lanes: number;
  readonly count: number;
}

/** Teams of the forward pass, which keeps one row in registers, and possibly the weight and the bias. */
const forwardTeams: readonly Team[] = [
  ...[4, 8, 16, 32].map((count) => ({ lanes: LANES, count })),
  ...[8, 16].map((count) => ({ lanes: 256, count })),
  { lanes: 512, count: 16 },
];
/**
 * Teams of the backward pass, which keeps five rows in registers: x, the gradient, the weight, and the sums of the
 * weight's and the bias's gradients.
 */
const backwardTeams: readonly Team[] = [
  ...[4, 8, 16].map((count) => ({ lanes: LANES, count })),
  ...[4, 8, 16].map((count) => ({ lanes: 256, count })),
  { lanes: 512, count: 16 },
];

/**
 * The most chunks of rows, enough to fill any GPU. In the backward pass each chunk writes a row of sums, so more chunks
 * need more memory.
 */
const FORWARD_CHUNKS = 4096;
const BACKWARD_CHUNKS = 512;
/** The most chunks in the backward pass if each SIMD-group processes one chunk of at least `SIMDGROUP_ROWS` rows. */
const SIMDGROUP_CHUNKS = 2048;
const SIMDGROUP_ROWS = 16;
/** In the backward pass, a chunk has at least rows / `FEW_CHUNKS` rows, clamped to these bounds. */
const LEAST_ROWS = [2, 4] as const;
const FEW_CHUNKS = 64;
/** The most rows of a chunk. For long rows, two sums for each row of a chunk are kept in threadgroup memory. */
const MOST_ROWS = 1024;
/** Threads with at most this many elements of a row also hold weight and bias. */
const MOST_HELD = 16;

/** How a call's rows are divided. */
export interface Division extends Team {
  /** Whether a team holds a whole row, and so reads it once. */
  readonly fits: boolean;
  /** Rows that a team processes. */
  readonly chunk: number;
  readonly chunks: number;
  /** Whether a team processes several rows, and keeps weight and bias in registers meanwhile. */
  readonly isChunked: boolean;
  readonly threads: number;
  readonly threadgroups: number;
}

export const divideForward = (problem: NormalizationProblem): Division =>
  divide(problem, forwardTeams, Math.ceil(problem.rows / FORWARD_CHUNKS));

export function divideBackward(problem: NormalizationProblem): Division {
  const { rows } = problem;
  const [fewest, least] = LEAST_ROWS;
  const few = Math.min(Math.max(Math.floor(rows / FEW_CHUNKS), fewest), least);
  const ofMany = Math.ceil(rows / BACKWARD_CHUNKS);
  const isShort = teamOf(problem, backwardTeams)?.lanes === LANES;
  const ofShort = Math.max(SIMDGROUP_ROWS, Math.ceil(rows / SIMDGROUP_CHUNKS));
  return divide(problem, backwardTeams, Math.max(isShort ? Math.min(ofMany, ofShort) : ofMany, few));
}

/** Returns the first team that can hold a row; undefined if none can. */
const teamOf = ({ length }: NormalizationProblem, teams: readonly Team[]): Team | undefined =>
  teams.find(({ lanes, count }) => length <= lanes * count);

function divide(problem: NormalizationProblem, teams: readonly Team[], wanted: number): Division {
  const { rows } = problem;
  const found = teamOf(problem, teams);
  const { lanes, count } = found ?? lastElement(teams);
  const chunk = Math.min(wanted, MOST_ROWS);
  const chunks = Math.ceil(rows / chunk);
  const teamsOfGroup = lanes === LANES ? TEAMS : 1;
  return {
    lanes,
    count,
    fits: found !== undefined,
    chunk,
    chunks,
    isChunked: chunk > 1 && count <= MOST_HELD,
    threads: lanes * teamsOfGroup,
    threadgroups: Math.ceil(chunks / teamsOfGroup),
  };
}

/** Returns the function constants: a bit for each operand present, and the division of rows among threads. */
export function constantsOf(
  { inputs, outputs }: NormalizationProblem,
  { lanes, count, fits }: Division,
  operands: readonly Tensor[],
): number[] {
  const named = { ...inputs, ...outputs };
  const { names, ordinal } = normalizationOptions;
  const bits = names.reduce((sum, name) => sum + (named[name] ? 2 ** ordinal(name) : 0), 0);
  const vectors = [inputs.weight, inputs.bias].filter((vector) => vector !== undefined);
  const isAdjacent = [...operands, ...vectors].every(({ strides }) => strides.at(-1) === 1);
  return [bits, lanes, count, Number(fits), Number(isAdjacent)];
}

/** Returns the suffix of host names: the dtypes of rows and of weight and bias. */
export const typesOf = ({ inputs: { x }, vectorDType }: NormalizationProblem): string =>
  `${metalTypeOf(x.dtype)}_${metalTypeOf(vectorDType)}`;

/** Returns the kernel's parameters. @param operands up to three of x's shape, in the kernel's order */
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
    chunk,
    chunks,
    eps,
  });
