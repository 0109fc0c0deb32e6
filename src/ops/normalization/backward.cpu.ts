import type { Implementation } from "../../backend/backend.ts";
import { rowValues, weightValues } from "./call.cpu.ts";
import { type NormalizationAttributes, normalizeGradientCall } from "./primitive.ts";
import { type BackwardProblem, problemOf } from "./problem.ts";

export const backwardCpu: Implementation<NormalizationAttributes> = {
  run(call) {
    const problem = problemOf<BackwardProblem>(call);
    const { x, gradOut, gradSum, weight, mean, scale } = problem.inputs;
    const { gradX, gradWeight, gradBias } = problem.outputs;
    const values = {
      ...rowValues(problem, [x, gradOut, gradSum]),
      ...weightValues(weight),

      hasGradX: gradX !== undefined,
      hasGradWeight: gradWeight !== undefined,
      hasGradBias: gradBias !== undefined,
    };
    const operands = [x, gradOut, gradSum, weight, mean, scale, gradX, gradWeight, gradBias];
    normalizeGradientCall(call.operation, values, operands);
  },
};
