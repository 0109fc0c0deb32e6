import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import { type AttentionAttributes, problemOf } from "./problem.ts";
import { addScaled, headsOf, logSumExpOf, pairsOf, readerOf } from "./scores.reference.ts";

/** The definition, query by query; no more memory than its results and one head's rows take. */
export const forwardReference: Implementation<AttentionAttributes> = {
  run(call) {
    const problem = problemOf(call);
    const { heads, queries, valueDim, inputs } = problem;
    const [out, logSumExp] = call.outputs.map(({ size }) => new Float64Array(size)) as [Float64Array, Float64Array];
    const pairs = pairsOf(problem);
    const sinkAt = inputs.sinks && readerOf(inputs.sinks);
    for (const rows of headsOf(problem)) {
      const { sequence, head, v } = rows;
      const sink = sinkAt ? [sinkAt(0, head, 0, 0)] : [];
      for (let i = 0; i < sequence.queries; i++) {
        const attended = pairs(rows, i);
        const row = (sequence.batch * heads + head) * queries + sequence.queryStart + i;
        const sum = logSumExpOf([...attended.map(({ score }) => score), ...sink]);
        logSumExp[row] = sum;
        const result = out.subarray(row * valueDim, (row + 1) * valueDim);
        for (const { j, score, keep } of attended)
          if (keep !== 0) addScaled(result, Math.exp(score - sum) * keep, v[j]!);
      }
    }
    store(call.outputs[0]!, out);
    store(call.outputs[1]!, logSumExp);
  },
};
