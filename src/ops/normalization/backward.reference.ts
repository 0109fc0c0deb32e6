import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import type { NormalizationAttributes } from "./primitive.ts";
import { type BackwardProblem, problemOf } from "./problem.ts";

/** Computes the definition row by row. */
export const backwardReference: Implementation<NormalizationAttributes> = {
  run(call) {
    const problem = problemOf<BackwardProblem>(call);
    const { inputs, outputs, length } = problem;
    const gradOut = toNumbers(inputs.gradOut);
    const normalized = normalizedRows(problem);
    if (outputs.gradX) store(outputs.gradX, gradientOfRows(problem, gradOut, normalized));
    const products = gradOut.map((gradient, at) => gradient * normalized[at]);
    if (outputs.gradWeight) store(outputs.gradWeight, columnSums(products, length));
    if (outputs.gradBias) store(outputs.gradBias, columnSums(gradOut, length));
  },
};

/** Returns n of each row. */
function normalizedRows({ inputs, length }: BackwardProblem): Float64Array {
  const [scale, mean] = [toNumbers(inputs.scale), inputs.mean && toNumbers(inputs.mean)];
  const rowOf = (at: number) => Math.floor(at / length);
  return toNumbers(inputs.x).map((value, at) => (value - (mean?.[rowOf(at)] ?? 0)) * scale[rowOf(at)]);
}

function gradientOfRows(problem: BackwardProblem, gradOut: Float64Array, normalized: Float64Array): Float64Array {
  const { inputs, isCentered, rows, length } = problem;
  const scale = toNumbers(inputs.scale);
  const weight = inputs.weight && toNumbers(inputs.weight);
  const gradSum = inputs.gradSum && toNumbers(inputs.gradSum);
  const result = new Float64Array(gradOut.length);
  for (let row = 0; row < rows; row++) {
    const [begin, end] = [row * length, (row + 1) * length];
    const n = normalized.subarray(begin, end);
    const v = [...gradOut.subarray(begin, end)].map((gradient, k) => gradient * (weight?.[k] ?? 1));
    const average = isCentered ? sumOf(v) / length : 0;
    const projection = sumOf(v.map((value, k) => value * n[k])) / length;
    for (let k = 0; k < length; k++)
      result[begin + k] = scale[row] * (v[k] - average - n[k] * projection) + (gradSum?.[begin + k] ?? 0);
  }
  return result;
}

/** Sums each column over all rows. */
function columnSums(values: Float64Array, length: number): number[] {
  const rows = Array.from({ length: values.length / length }, (_, row) => row * length);
  return Array.from({ length }, (_, k) => sumOf(rows.map((start) => values[start + k])));
}
