import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { bytesFor, headOf, presence, vectorOf } from "./call.cpu.ts";
import { type NormalizationAttributes, problemOf } from "./problem.ts";

/** `orchard_cpu_normalize_gradient`. */
export const backwardCpu: Implementation<NormalizationAttributes> = {
  run(call) {
    const problem = problemOf(call);
    const { x, gradOut, gradSum, weight, mean, scale } = problem.inputs;
    const { gradX, gradWeight, gradBias } = problem.outputs;
    const head = headOf(problem, [x, gradOut, gradSum]);
    const block = Float64Array.from([...head, ...vectorOf(weight), ...presence([gradX, gradWeight, gradBias])]);
    const { native } = cpuLibrary();
    const status = native.orchard_cpu_normalize_gradient(
      ...([block, bytesFor(x), bytesFor(gradOut), bytesFor(gradSum), bytesFor(weight), bytesFor(mean)] as const),
      ...([bytesFor(scale), bytesFor(gradX), bytesFor(gradWeight), bytesFor(gradBias)] as const),
    );
    check(native, status, call.operation);
  },
};
