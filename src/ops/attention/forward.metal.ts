import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, pipelineFor, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { launchTiled, sequenceCount, tensorOf, tilesOf, unsupportedReason } from "./launch.metal.ts";
import { type Call, callOf, constantsOf, type Parts, parametersOf } from "./parameters.metal.ts";
import { type AttentionAttributes, problemOf } from "./problem.ts";
import { SIMD_WIDTH, VECTOR_QUERIES, vectorParts } from "./tiles.metal.ts";

/** Few queries go through keys one by one, many by tiles. */
export const forwardMetal: MetalImplementation<AttentionAttributes> = {
  unsupported: unsupportedReason,
  run(operation) {
    const problem = problemOf(operation);
    const logSumExp = problem.outputs.logSumExp?.tensor;
    if (logSumExp) return launchPass(callOf(problem, logSumExp));
    using standIn = scratchTensor([1], "float32");
    return launchPass(callOf(problem, standIn));
  },
};

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

/** `VECTOR_THREADS` of `vector.metal`. */
const VECTOR_THREADS = 256;

/** Threads of `vector_combine`: one for each element of a row. */
const combineThreads = ({ valueDim }: Call): number => SIMD_WIDTH * Math.max(1, Math.ceil(valueDim / SIMD_WIDTH));

/** One kernel, or two where keys are cut into parts. */
function launchVector(call: Call): TicketRange | undefined {
  const queries = tilesOf(call, "queries", 1);
  const rows = queries * call.heads * sequenceCount(call);
  if (rows === 0) return undefined;
  const cut = partsOf(call, rows);
  // Compiled now, so that longer keys, once they are cut, compile nothing.
  pipelineFor(metalContext(), vectorKernel(call, "vector_combine"));
  if (cut.parts === 1) return launchParts(call, cut, call.standIn); // parts are not written
  using parts = scratchTensor([rows, cut.parts, call.valueDim + 2], "float32");
  const partial = launchParts(call, cut, parts);
  const combined = launch({
    ...vectorKernel(call, "vector_combine"),
    threadgroup: combineThreads(call),
    operands: [
      reads(parts),
      ...(["sinks", "sequences"] as const).map((name) => reads(tensorOf(call, name))),
      ...results.map((name) => writes(tensorOf(call, name))),
    ],
    parameters: parametersOf(call, cut),
    threadgroups: [queries, call.heads, sequenceCount(call)],
  });
  return spanOf([partial, combined]);
}

/** How the keys that one query can attend to are cut. */
function partsOf(call: Call, rows: number): Parts {
  const { left = Infinity, right = Infinity } = call.band ?? {};
  const attended = Math.min(tilesOf(call, "keys", 1), left + right + 1);
  const partKeys = Math.max(1, Math.ceil(attended / vectorParts(attended, rows)));
  return { parts: Math.max(1, Math.ceil(attended / partKeys)), partKeys };
}

function launchParts(call: Call, cut: Parts, parts: Tensor): TicketRange {
  return launch({
    ...vectorKernel(call, "vector"),
    operands: [
      ...operands.map((name) => reads(tensorOf(call, name))),
      ...results.map((name) => writes(tensorOf(call, name))),
      writes(parts),
    ],
    parameters: parametersOf(call, cut),
    threadgroups: [tilesOf(call, "queries", 1) * cut.parts, call.heads, sequenceCount(call)],
  });
}

const vectorKernel = (call: Call, name: "vector" | "vector_combine") => ({
  file: "attention/vector.metal",
  name: `${name}_${metalTypeOf(call.operands.q!.tensor.dtype)}`,
  constants: constantsOf(call),
  threadgroup: VECTOR_THREADS,
});
