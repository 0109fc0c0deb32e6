import type { Implementation } from "../../backend/backend.ts";
import { launchTiled, sequenceCount, tilesOf, whyNot } from "./launch.metal.ts";
import { type Call, callOf } from "./parameters.metal.ts";
import { type AttentionAttributes, problemOf } from "./problem.ts";

export const forwardMetal: Implementation<AttentionAttributes> = {
  unsupported: whyNot,
  run(operation) {
    launchForward(callOf(problemOf(operation)));
  },
};

function launchForward(call: Call): void {
  launchTiled(call, {
    kernel: "forward",
    reads: ["q", "k", "v", "mask", "bias", "sinks", "slopes", "sequences"],
    writes: ["out", "logSumExp"],
    streams: ["k", "v"],
    threadgroups: (rows) => [tilesOf(call, "queries", rows), call.heads, sequenceCount(call)],
  });
}
