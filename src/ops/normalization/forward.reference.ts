import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import type { NormalizationAttributes } from "./primitive.ts";
import { type ForwardProblem, problemOf } from "./problem.ts";

/** Computes the definition row by row. */
export const forwardReference: Implementation<NormalizationAttributes> = {
  run(call) {
    const { inputs, outputs, isCentered, eps, rows, length } = problemOf<ForwardProblem>(call);
    const x = toNumbers(inputs.x);
    const residual = inputs.residual && toNumbers(inputs.residual);
    if (outputs.sum) store(outputs.sum, residual ? x.map((value, at) => value + residual[at]) : x);
    const s = outputs.sum ? toNumbers(outputs.sum) : x; // the sum rounded to the dtype of x
    const weight = inputs.weight && toNumbers(inputs.weight);
    const bias = inputs.bias && toNumbers(inputs.bias);
    const [means, scales] = [new Float64Array(rows), new Float64Array(rows)];
    const out = new Float64Array(s.length);
    for (let row = 0; row < rows; row++) {
      const values = s.subarray(row * length, (row + 1) * length);
      const { mean, scale } = statisticsOf([...values], isCentered, eps);
      means[row] = mean;
      scales[row] = scale;
      for (const [k, value] of values.entries())
        out[row * length + k] = (value - mean) * scale * (weight?.[k] ?? 1) + (bias?.[k] ?? 0);
    }
    store(outputs.out, out);
    store(outputs.scale, scales);
    if (outputs.mean) store(outputs.mean, means);
  },
};

function statisticsOf(row: readonly number[], isCentered: boolean, eps: number): { mean: number; scale: number } {
  const mean = isCentered ? sumOf(row) / row.length : 0;
  const variance = sumOf(row.map((value) => (value - mean) ** 2)) / row.length;
  return { mean, scale: 1 / Math.sqrt(variance + eps) };
}
