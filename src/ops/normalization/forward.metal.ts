import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import type { NormalizationAttributes } from "./primitive.ts";
import { type ForwardProblem, problemOf } from "./problem.ts";
import { constantsOf, divideForward, parametersOf, typesOf } from "./rows.metal.ts";

/**
 * Runs one kernel. Absent operands are bound to another operand of the same dtype, which the kernel does not access in
 * their place.
 */
export const forwardMetal: MetalImplementation<NormalizationAttributes> = {
  unsupported: noFloat64,
  run(call) {
    const problem = problemOf<ForwardProblem>(call);
    const { x, residual = x, weight, bias } = problem.inputs;
    const { out, sum = out, scale, mean = scale } = problem.outputs;
    const division = divideForward(problem);
    return launch({
      file: "normalization/normalize.metal",
      name: `normalize_${typesOf(problem)}`,
      constants: [...constantsOf(problem, division, [x, residual]), Number(division.isChunked)],
      operands: [
        ...[x, residual, weight ?? bias ?? x, bias ?? weight ?? x].map(reads),
        ...[out, sum, mean, scale].map(writes),
      ],
      parameters: parametersOf(problem, division, [x, residual]),
      threadgroups: division.threadgroups,
      threadgroup: division.threads,
    });
  },
};
