import type { Implementation } from "../../backend/backend.ts";
import { biasValues, rowValues, weightValues } from "./call.cpu.ts";
import { type NormalizationAttributes, normalizeCall } from "./primitive.ts";
import { type ForwardProblem, problemOf } from "./problem.ts";

export const forwardCpu: Implementation<NormalizationAttributes> = {
  run(call) {
    const problem = problemOf<ForwardProblem>(call);
    const { x, residual, weight, bias } = problem.inputs;
    const { out, sum, mean, scale } = problem.outputs;
    const values = {
      ...rowValues(problem, [x, residual]),
      ...weightValues(weight),
      ...biasValues(bias),
      hasSum: sum !== undefined,
      hasMean: mean !== undefined,
    };
    normalizeCall(call.operation, values, [x, residual, weight, bias, out, sum, mean, scale]);
  },
};
