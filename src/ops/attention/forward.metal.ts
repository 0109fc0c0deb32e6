import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import {
  type Launch,
  launch,
  metalTypeOf,
  type Operand,
  pipelineFor,
  reads,
  spanOf,
  writes,
} from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { reachOf } from "../../tensor/reach.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { launchTiled, resultOf, sequenceCount, tensorOf, tilesOf, unsupportedReason, workOf } from "./launch.metal.ts";
import { type Call, callOf, constantsOf, type Parts, parametersOf } from "./parameters.metal.ts";
import { type AttentionAttributes, type AttentionProblem, problemOf } from "./problem.ts";
import { SIMD_WIDTH, VECTOR_QUERIES, vectorCut, vectorSimdgroups, vectorTeam } from "./tiles.metal.ts";

/** Runs the vector path for few queries, which reads keys one by one, and the tiled kernel for many. */
export const forwardMetal: MetalImplementation<AttentionAttributes> = {
  unsupported: unsupportedReason,
  run(operation) {
    const problem = problemOf(operation);
    const logSumExp = problem.outputs.logSumExp?.tensor;
    const standIn = logSumExp ?? alignedOperand(problem);
    if (standIn) return launchPass(callOf(problem, standIn));
    using scratch = scratchTensor([1], "float32");
    return launchPass(callOf(problem, scratch));
  },
};

/** Returns an operand that can take the place of any absent one; undefined if there is none. */
function alignedOperand({ inputs }: AttentionProblem): Tensor | undefined {
  const { tensor } = inputs.q;
  const start = tensor.size === 0 ? 1 : reachOf(tensor).first * bytesOf(tensor.dtype);
  return start % Float32Array.BYTES_PER_ELEMENT === 0 ? tensor : undefined;
}

function launchPass(call: Call): TicketRange | null {
  const isVector = tilesOf(call, "queries", 1) <= VECTOR_QUERIES;
  return (isVector ? launchVector(call) : launchForward(call)) ?? null;
}

const operands = ["q", "k", "v", "mask", "bias", "sinks", "slopes", "sequences"] as const;
const results = ["out", "logSumExp", "logSumExpLow"] as const;

function launchForward(call: Call): TicketRange | undefined {
  return launchTiled(call, {
    kernel: "forward",
    reads: operands,
    writes: results,
    streams: ["k", "v"],
    threadgroups: (rows) => [tilesOf(call, "queries", rows), call.heads, sequenceCount(call)],
  });
}

/** Returns the threads of `vector_combine`: one for each element of a row, rounded up to whole SIMD-groups. */
const combineThreads = ({ valueDim }: Call): number => SIMD_WIDTH * Math.max(1, Math.ceil(valueDim / SIMD_WIDTH));

/**
 * Launches one kernel, or two if keys are split into parts.
 *
 * @param parameters returns the parameters of the next dispatch
 */
export function launchVector(
  call: Call,
  parameters = (cut: Parts): Uint8Array => parametersOf(call, cut),
): TicketRange | undefined {
  const queries = tilesOf(call, "queries", 1);
  const rows = call.batch * call.heads * call.queries;
  if (rows === 0 || queries === 0) return undefined;
  const { simdgroups, ...cut } = cutOf(call, queries);
  const [whole, part] = [vectorKernel(call, vectorSimdgroups.whole), vectorKernel(call, vectorSimdgroups.cut)];
  // Compile these now, so that no compilation happens once keys grow long enough to be split.
  for (const kernel of [part, combineKernel(call)]) pipelineFor(metalContext(), kernel);
  const kernel = simdgroups === vectorSimdgroups.cut ? part : whole;
  const launchParts = (to: Operand) => launch(partsOf(call, kernel, cut, to, parameters(cut)));
  if (cut.parts === 1) return launchParts(reads(call.standIn)); // writes the results directly
  using parts = scratchTensor([rows, cut.parts, call.valueDim + 2], "float32");
  const partial = launchParts(writes(parts));
  const combined = launch({
    ...combineKernel(call),
    operands: [
      reads(parts),
      ...(["sinks", "sequences"] as const).map((name) => reads(tensorOf(call, name))),
      ...results.map((name) => resultOf(call, name)),
    ],
    parameters: parameters(cut),
    threadgroups: [queries, call.heads, sequenceCount(call)],
  });
  return spanOf([partial, combined]);
}

/** Returns the teams for the queries of one head of keys; with packing, those of the longest sequence. */
const teamOf = (call: Call) => vectorTeam(tilesOf(call, "queries", 1) * call.group, Math.max(call.dim, call.valueDim));

/** Returns how the keys that a team can attend to are split, and the SIMD-groups for each part. */
function cutOf(call: Call, queries: number): Parts & { readonly simdgroups: number } {
  const { left = Infinity, right = Infinity } = call.band ?? {};
  const attended = Math.min(tilesOf(call, "keys", 1), left + right + queries);
  const { parts, simdgroups } = vectorCut(attended, teamOf(call).teams * call.kvHeads * sequenceCount(call));
  const partKeys = Math.max(1, Math.ceil(attended / parts));
  return { parts: Math.max(1, Math.ceil(attended / partKeys)), partKeys, simdgroups };
}

const partsOf = (call: Call, kernel: VectorKernel, cut: Parts, to: Operand, parameters: Uint8Array): Launch => ({
  ...kernel,
  operands: [
    ...operands.map((name) => reads(tensorOf(call, name))),
    ...results.map((name) => resultOf(call, name)),
    to,
  ],
  parameters,
  threadgroups: [teamOf(call).teams * cut.parts, call.kvHeads, sequenceCount(call)],
  work: workOf(call),
});

const FILE = "attention/vector.metal";
const typeOf = (call: Call): string => metalTypeOf(call.operands.q!.tensor.dtype);

function vectorKernel(call: Call, simdgroups: number) {
  const { teamRows } = teamOf(call);
  const sums = (simdgroups - 1) * teamRows * call.valueDim * Float32Array.BYTES_PER_ELEMENT;
  return {
    file: FILE,
    name: `vector_${typeOf(call)}_${simdgroups}x${teamRows}`,
    constants: constantsOf(call, ["k", "v"]),
    threadgroup: SIMD_WIDTH * simdgroups,
    threadgroupMemory: [Math.max(16, Math.ceil(sums / 16) * 16)],
  };
}
type VectorKernel = ReturnType<typeof vectorKernel>;

const combineKernel = (call: Call) => ({
  file: FILE,
  name: `vector_combine_${typeOf(call)}`,
  constants: constantsOf(call),
  threadgroup: combineThreads(call),
});
