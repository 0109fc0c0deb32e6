import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import { tupleOf } from "../../core/tuples.ts";
import { broadcastStrides, rowMajorStrides } from "../../tensor/shape.ts";
import { type AttentionAttributes, type AttentionProblem, type OutputName, problemOf } from "./problem.ts";
import {
  addScaled,
  dot,
  type Head,
  headsOf,
  type LogSumExp,
  pairsOf,
  probabilityOf,
  readerOf,
  rowsOf,
} from "./scores.reference.ts";

/** Computes the definition query by query; memory holds only the results and one head's rows. */
export const backwardReference: Implementation<AttentionAttributes> = {
  run(call) {
    const problem = problemOf(call);
    const sums = new Map(call.attributes.outputs.map((name, at) => [name, new Float64Array(call.outputs[at].size)]));
    const addRow = rowAdder(problem, sums);
    for (const rows of headsOf(problem)) {
      const deltas = deltasOf(problem, rows);
      for (let i = 0; i < rows.sequence.queries; i++) addRow(rows, i, deltas);
    }
    for (const [at, name] of call.attributes.outputs.entries()) store(call.outputs[at], sums.get(name)!);
  },
};

/** Values that the gradients of a head's rows need. */
interface Deltas {
  readonly gradOut: readonly Float64Array[];
  readonly logSumExp: readonly LogSumExp[];
  /** Δ */
  readonly delta: readonly number[];
}

function deltasOf({ inputs }: AttentionProblem, { sequence, head }: Head): Deltas {
  const { batch, queryStart, queries } = sequence;
  const [gradOut, out] = tupleOf(
    [inputs.gradOut!, inputs.out!].map((operand) => rowsOf(operand, batch, head, queryStart, queries)),
    2,
  );
  const logSumExpAt = readerOf(inputs.logSumExp!);
  const lowPartAt = readerOf(inputs.logSumExpLow!);
  const gradientAt = inputs.gradLogSumExp && readerOf(inputs.gradLogSumExp);
  const logSumExp = gradOut.map((_, i) => {
    const row = [batch, head, queryStart + i, 0] as const;
    return { high: logSumExpAt(...row), low: lowPartAt(...row) };
  });
  const delta = gradOut.map((row, i) => dot(row, out[i]) - (gradientAt?.(batch, head, queryStart + i, 0) ?? 0));
  return { gradOut, logSumExp, delta };
}

/** Returns a function that adds one query's contribution to each gradient that is needed. */
function rowAdder(problem: AttentionProblem, sums: ReadonlyMap<OutputName, Float64Array>) {
  const { heads, kvHeads, queries, keys, dim, valueDim, scale, inputs } = problem;
  const [gradQ, gradK, gradV] = (["gradQ", "gradK", "gradV"] as const).map((name) => sums.get(name));
  const gradSinks = sums.get("gradSinks");
  const addToBias = biasAdder(problem, sums.get("gradBias"));
  const sinkAt = gradSinks && readerOf(inputs.sinks!);
  const pairs = pairsOf(problem);
  return (rows: Head, i: number, { gradOut, logSumExp, delta }: Deltas): void => {
    const { sequence, head, kvHead, q, k, v } = rows;
    const queryRow = (sequence.batch * heads + head) * queries + sequence.queryStart + i;
    const keyRow = (sequence.batch * kvHeads + kvHead) * keys + sequence.keyStart;
    for (const { j, score, capSlope, keep } of pairs(rows, i)) {
      const probability = probabilityOf(score, logSumExp[i]);
      const incoming = keep === 0 ? 0 : keep * dot(gradOut[i], v[j]);
      const slope = probability * (incoming - delta[i]);
      const inner = scale * slope * capSlope;
      addToBias?.(rows, i, j, slope);
      if (gradQ) addScaled(rowAt(gradQ, queryRow, dim), inner, k[j]);
      if (gradK) addScaled(rowAt(gradK, keyRow + j, dim), inner, q[i]);
      if (gradV && keep !== 0) addScaled(rowAt(gradV, keyRow + j, valueDim), probability * keep, gradOut[i]);
    }
    if (gradSinks) addToSink(gradSinks, head, sinkAt!(0, head, 0, 0), logSumExp[i], delta[i]);
  };
}

const rowAt = (rows: Float64Array, row: number, length: number): Float64Array =>
  rows.subarray(row * length, (row + 1) * length);

/** Adds a row's gradient of its sink, which acts like a key whose value is 0. */
function addToSink(gradient: Float64Array, head: number, sink: number, logSumExp: LogSumExp, delta: number): void {
  if (logSumExp.high !== -Infinity) gradient[head] -= probabilityOf(sink, logSumExp) * delta;
}

/** Returns a function that adds to the gradient of the bias; many pairs share an element of a broadcast bias. */
function biasAdder({ batch, heads, queries, keys, inputs }: AttentionProblem, gradient: Float64Array | undefined) {
  if (!gradient) return undefined;
  const { shape } = inputs.bias!.tensor;
  const [b, h, r, c] = broadcastStrides(shape, rowMajorStrides(shape), [batch, heads, queries, keys]);
  return ({ sequence, head }: Head, i: number, j: number, slope: number): void => {
    const [row, column] = [sequence.queryStart + i, sequence.keyStart + j];
    gradient[sequence.batch * b + head * h + row * r + column * c] += slope;
  };
}
