import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { launchTiled, sequenceCount, type TiledLaunch, tensorOf, tilesOf, unsupportedReason } from "./launch.metal.ts";
import { type Call, callOf, constantsOf, type OperandName, parametersOf } from "./parameters.metal.ts";
import { type AttentionAttributes, problemOf } from "./problem.ts";

/** Computes Δ of each row, then runs one kernel for each gradient that is needed; gradK and gradV share one. */
export const backwardMetal: MetalImplementation<AttentionAttributes> = {
  unsupported: unsupportedReason,
  run(operation) {
    const problem = problemOf(operation);
    const call = callOf(problem, problem.inputs.logSumExp!.tensor);
    const { batch, heads, queries, operands } = call;
    using delta = scratchTensor([batch, heads, queries], "float32");
    return spanOf([
      delta.size === 0 ? undefined : launchRows(call, delta),
      operands.gradQ && launchTiled(call, queriesLaunch(call, delta)),
      operands.gradK && launchTiled(call, keysLaunch(call, delta)),
      operands.gradBias && launchTiled(call, biasLaunch(call, delta)),
      operands.gradSinks && launchSinks(call, delta),
    ]);
  },
};

/** SIMD-groups in a threadgroup of `gradient_rows`, each of which computes one row. */
const ROW_SIMDGROUPS = 4;
/** `SINK_THREADS` of `gradient_rows.metal`. */
const SINK_THREADS = 256;

/** Computes Δ [B, H, M], the only temporary of the backward pass. */
function launchRows(call: Call, delta: Tensor): TicketRange {
  const { batch, heads, queries, operands } = call;
  return launch({
    file: "attention/gradient_rows.metal",
    name: `gradient_rows_${metalTypeOf(operands.q!.tensor.dtype)}`,
    constants: constantsOf(call).slice(0, 2), // OPTIONS and VALUE_DIM only: its rows have E elements, and D is not used
    operands: [
      ...(["out", "gradOut", "gradLogSumExp"] as const).map((name) => reads(tensorOf(call, name))),
      writes(delta),
    ],
    parameters: parametersOf(call),
    threadgroups: [Math.ceil(queries / ROW_SIMDGROUPS), heads, batch],
    threadgroup: 32 * ROW_SIMDGROUPS,
  });
}

const pairOperands = [
  "q",
  "k",
  "v",
  "mask",
  "bias",
  "slopes",
  "sequences",
  "gradOut",
  "logSumExp",
  "logSumExpLow",
] as const;

const gradientLaunch = (kernel: TiledLaunch["kernel"], delta: Tensor, outputs: readonly OperandName[]) => ({
  kernel,
  reads: [...pairOperands, delta],
  writes: outputs,
});

const queriesLaunch = (call: Call, delta: Tensor): TiledLaunch => ({
  ...gradientLaunch("gradient_queries", delta, ["gradQ"]),
  streams: ["k", "v"],
  threadgroups: (rows) => [tilesOf(call, "queries", rows), call.heads, sequenceCount(call)],
});

const keysLaunch = (call: Call, delta: Tensor): TiledLaunch => ({
  ...gradientLaunch("gradient_keys", delta, ["gradK", "gradV"]),
  streams: ["q", "gradOut"],
  threadgroups: (rows) => [tilesOf(call, "keys", rows), call.kvHeads, sequenceCount(call)],
});

function biasLaunch({ queries, keys, batch, heads, operands }: Call, delta: Tensor): TiledLaunch {
  const sizes = operands.bias!.tensor.shape;
  /** Tiles along an axis of the bias; one if the axis is broadcast. */
  const along = (axis: number, count: number) => ((sizes.at(axis) ?? 1) === 1 ? 1 : count);
  return {
    ...gradientLaunch("gradient_bias", delta, ["gradBias"]),
    streams: ["k", "v"],
    threadgroups: (rows, columns) => [
      along(-1, Math.ceil(keys / columns)),
      along(-2, Math.ceil(queries / rows)),
      along(-4, batch) * along(-3, heads),
    ],
  };
}

function launchSinks(call: Call, delta: Tensor): TicketRange | undefined {
  if (call.heads === 0) return undefined;
  return launch({
    file: "attention/gradient_rows.metal",
    name: `gradient_sinks_${metalTypeOf(call.operands.q!.tensor.dtype)}`,
    constants: constantsOf(call).slice(0, 2), // OPTIONS and VALUE_DIM only: its rows have E elements, and D is not used
    operands: [
      reads(tensorOf(call, "sinks")),
      reads(tensorOf(call, "logSumExp")),
      reads(tensorOf(call, "logSumExpLow")),
      reads(delta),
      writes(tensorOf(call, "gradSinks")),
    ],
    parameters: parametersOf(call),
    threadgroups: call.heads,
    threadgroup: SINK_THREADS,
  });
}
