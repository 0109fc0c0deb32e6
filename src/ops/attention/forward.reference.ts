import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type AttentionAttributes, problemOf } from "./problem.ts";
import {
  addScaled,
  headsOf,
  type LogSumExp,
  logSumExpOf,
  pairsOf,
  probabilityOf,
  readerOf,
} from "./scores.reference.ts";

/** Computes the definition query by query; memory holds only the results and one head's rows. */
export const forwardReference: Implementation<AttentionAttributes, readonly Tensor[], [Tensor, Tensor, Tensor]> = {
  run(call) {
    const problem = problemOf(call);
    const { heads, queries, valueDim, inputs } = problem;
    const out = new Float64Array(call.outputs[0].size);
    const logSumExps: LogSumExp[] = [];
    const pairs = pairsOf(problem);
    const sinkAt = inputs.sinks && readerOf(inputs.sinks);
    for (const rows of headsOf(problem)) {
      const { sequence, head, v } = rows;
      const sink = sinkAt ? [sinkAt(0, head, 0, 0)] : [];
      for (let i = 0; i < sequence.queries; i++) {
        const attended = pairs(rows, i);
        const row = (sequence.batch * heads + head) * queries + sequence.queryStart + i;
        const sum = logSumExpOf([...attended.map(({ score }) => score), ...sink]);
        logSumExps[row] = sum;
        const result = out.subarray(row * valueDim, (row + 1) * valueDim);
        for (const { j, score, keep } of attended)
          if (keep !== 0) addScaled(result, probabilityOf(score, sum) * keep, v[j]);
      }
    }
    store(call.outputs[0], out);
    const [, logSumExp, low] = call.outputs;
    if (logSumExp) storeLogSumExps(logSumExps, logSumExp, low);
  },
};

function storeLogSumExps(exact: readonly LogSumExp[], logSumExp: Tensor, low: Tensor): void {
  store(
    logSumExp,
    exact.map((sum) => sum.high + sum.low),
  );
  const rounded = toNumbers(logSumExp);
  const lost = (sum: LogSumExp, at: number) => (sum.high === -Infinity ? 0 : sum.high - rounded[at] + sum.low);
  store(low, exact.map(lost));
}
