import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { NormalizationAttributes } from "./primitive.ts";
import { type BackwardProblem, problemOf } from "./problem.ts";
import { constantsOf, type Division, divideBackward, parametersOf, typesOf } from "./rows.metal.ts";

/** Size of a pair of sums. */
const PAIR_BYTES = 8;
/** `COLUMNS` of the kernel `add_chunks`. */
const COLUMNS = 32;
/** Threads in a threadgroup of `add_chunks`. */
const THREADS = 512;

/** Runs one kernel over the rows, and one that sums the partial gradients of weight and bias over chunks of rows. */
export const backwardMetal: MetalImplementation<NormalizationAttributes> = {
  unsupported: noFloat64,
  run(call) {
    const problem = problemOf<BackwardProblem>(call);
    const { gradWeight, gradBias } = problem.outputs;
    const division = divideBackward(problem);
    const sums = [gradWeight, gradBias].filter((gradient) => gradient);
    using parts = scratchTensor([Math.max(sums.length * division.chunks * problem.length, 1)], "float32");
    const rows = problem.rows > 0 ? launchRows(problem, division, parts) : undefined;
    const total = sums.length > 0 ? launchSums(problem, division, parts, sums.length) : undefined;
    return spanOf([rows, total]);
  },
};

function launchRows(problem: BackwardProblem, division: Division, parts: Tensor): TicketRange {
  const { x, gradOut, gradSum = x, scale, mean = scale, weight = scale } = problem.inputs;
  const rowSums = division.fits ? 2 : division.chunk;
  return launch({
    file: "normalization/normalize_gradient.metal",
    name: `normalize_gradient_${typesOf(problem)}`,
    constants: constantsOf(problem, division, [x, gradOut, gradSum]),
    operands: [
      ...[x, gradOut, gradSum, weight, mean, scale].map(reads),
      ...[problem.outputs.gradX ?? parts, parts].map(writes),
    ],
    parameters: parametersOf(problem, division, [x, gradOut, gradSum]),
    threadgroups: division.threadgroups,
    threadgroup: division.threads,
    threadgroupMemory: [Math.ceil((rowSums * PAIR_BYTES) / 16) * 16],
  });
}

function launchSums(problem: BackwardProblem, division: Division, parts: Tensor, count: number): TicketRange {
  const { x, gradOut } = problem.inputs;
  const { gradWeight, gradBias } = problem.outputs;
  const one = (gradWeight ?? gradBias)!;
  return launch({
    file: "normalization/normalize_gradient.metal",
    name: `add_chunks_${metalTypeOf(one.dtype)}`,
    constants: constantsOf(problem, division, [x, gradOut]),
    operands: [reads(parts), writes(gradWeight ?? one), writes(gradBias ?? one)],
    parameters: parametersOf(problem, division, [x, gradOut]),
    threadgroups: [Math.ceil(problem.length / COLUMNS), count],
    threadgroup: THREADS,
  });
}
