import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { bytesFor, headOf, presence, vectorOf } from "./call.cpu.ts";
import { type NormalizationAttributes, problemOf } from "./problem.ts";

/** `orchard_cpu_normalize`. */
export const forwardCpu: Implementation<NormalizationAttributes> = {
  run(call) {
    const problem = problemOf(call);
    const { x, residual, weight, bias } = problem.inputs;
    const { out, sum, mean, scale } = problem.outputs;
    const head = headOf(problem, [x, residual]);
    const block = Float64Array.from([...head, ...vectorOf(weight), ...vectorOf(bias), ...presence([sum, mean])]);
    const { native } = cpuLibrary();
    const status = native.orchard_cpu_normalize(
      ...([block, bytesFor(x), bytesFor(residual), bytesFor(weight), bytesFor(bias)] as const),
      ...([bytesFor(out), bytesFor(sum), bytesFor(mean), bytesFor(scale)] as const),
    );
    check(native, status, call.operation);
  },
};
