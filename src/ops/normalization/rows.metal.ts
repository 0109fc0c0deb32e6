/** `kernels/normalization/rows.h`: how threads share rows, and what kernels are given. */
import { metalTypeOf, startOf } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalizationOptions, normalizationParameters } from "./primitive.ts";
import { type NormalizationProblem, rowsOf } from "./problem.ts";

/** Of a SIMD-group, and SIMD-groups of a threadgroup that take a row each: `TEAMS` of the kernel. */
const LANES = 32;
const TEAMS = 4;

/** A team that holds rows of up to so many elements: its threads, and what each of them holds. */
interface Team {
  readonly lanes: number;
  readonly count: number;
}

/** The forward holds one row, and may hold weight and bias beside it. */
const forwardTeams: readonly Team[] = [
  ...[4, 8, 16, 32].map((count) => ({ lanes: LANES, count })),
  ...[8, 16].map((count) => ({ lanes: 256, count })),
  { lanes: 512, count: 16 },
];
/** The backward holds five: x, the gradient, the weight, and the sums of the weight's and the bias' gradients. */
const backwardTeams: readonly Team[] = [
  ...[4, 8, 16].map((count) => ({ lanes: LANES, count })),
  ...[4, 8, 16].map((count) => ({ lanes: 256, count })),
  { lanes: 512, count: 16 },
];

/** Chunks of rows that are enough for every GPU. In the backward each leaves a row of sums: more cost more memory. */
const FORWARD_CHUNKS = 4096;
const BACKWARD_CHUNKS = 512;
/** In the backward, where a SIMD-group takes a chunk and chunks have at least so many rows. */
const SIMDGROUP_CHUNKS = 2048;
const SIMDGROUP_ROWS = 16;
/** Rows of a chunk in the backward, where that leaves so many chunks. */
const LEAST_ROWS = [2, 4] as const;
const FEW_CHUNKS = 64;
/** Threads of long rows keep two sums for each row of their chunk in threadgroup memory. */
const MOST_ROWS = 1024;
/** Elements of weight and bias that a thread holds beside those of a row. */
const MOST_HELD = 16;

/** How a call's rows are divided. */
export interface Division extends Team {
  /** Whether a team holds a row, and so reads it once. */
  readonly fits: boolean;
  /** Rows that a team takes. */
  readonly chunk: number;
  readonly chunks: number;
  /** Whether a team takes several rows, and holds weight and bias meanwhile. */
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

/** The first team that holds a row; undefined where none does. */
const teamOf = ({ length }: NormalizationProblem, teams: readonly Team[]): Team | undefined =>
  teams.find(({ lanes, count }) => length <= lanes * count);

function divide(problem: NormalizationProblem, teams: readonly Team[], wanted: number): Division {
  const { rows } = problem;
  const found = teamOf(problem, teams);
  const { lanes, count } = found ?? teams.at(-1)!;
  const chunk = Math.min(wanted, MOST_ROWS);
  const chunks = Math.ceil(rows / chunk);
  const teamsOfGroup = lanes === LANES ? TEAMS : 1;
  return {
    ...{ lanes, count, fits: found !== undefined, chunk, chunks },
    isChunked: chunk > 1 && count <= MOST_HELD,
    threads: lanes * teamsOfGroup,
    threadgroups: Math.ceil(chunks / teamsOfGroup),
  };
}

/** The function constants: a bit for each operand that there is, and how threads share rows. */
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
