import type { Implementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, reads, writes } from "../../backend/metal/launch.ts";
import { type Call, callOf, constantsOf, parametersOf } from "./parameters.metal.ts";
import { type AttentionAttributes, problemOf } from "./problem.ts";
import { type Family, LARGEST_WIDTH, type Tile, tileFor } from "./tiles.metal.ts";

export const forwardMetal: Implementation<AttentionAttributes> = {
  unsupported: whyNot,
  run(operation) {
    launchForward(callOf(problemOf(operation)));
  },
};

/** Why Metal's kernels can't run a call. */
function whyNot(operation: Parameters<typeof problemOf>[0]): string | undefined {
  const { dim, valueDim, inputs } = problemOf(operation);
  if (inputs.q.tensor.dtype === "float64") return "Metal has no float64";
  const largest = Math.max(dim, valueDim);
  return largest > LARGEST_WIDTH ? `a head dimension of ${largest}, at most ${LARGEST_WIDTH} is possible` : undefined;
}

function launchForward(call: Call): void {
  const { q, k, v, mask, bias, sinks, slopes, out, logSumExp } = call.operands;
  const tile = tileFor("forward", familyOf(), q!.tensor.dtype, call.dim, call.valueDim);
  const absent = q!.tensor; // takes the place of what a call lacks and its kernel does not read
  launch({
    file: "attention/forward.metal",
    name: kernelName(tile, q!.tensor.dtype),
    constants: constantsOf(call, ["k", "v"]),
    operands: [
      ...[q, k, v, mask, bias, sinks, slopes].map((operand) => reads(operand?.tensor ?? absent)),
      reads(call.sequences ?? absent),
      writes(out!.tensor),
      writes(logSumExp!.tensor),
    ],
    parameters: parametersOf(call),
    threadgroups: [
      Math.ceil(longestOf(call, "queries") / (8 * tile.down)),
      call.heads,
      call.packed?.length ?? call.batch,
    ],
    threadgroup: 32 * tile.down * tile.across,
  });
}

const kernelName = ({ kernel, width, down, across, columns }: Tile, dtype: Parameters<typeof metalTypeOf>[0]) =>
  `${kernel}_${metalTypeOf(dtype)}_${width}_${down}x${across}x${columns}`;

const longestOf = (call: Call, rows: "queries" | "keys"): number =>
  call.packed ? Math.max(0, ...call.packed.map((sequence) => sequence[rows])) : call[rows];

function familyOf(): Family {
  return metalContext().deviceInfo().families.includes("apple9") ? "apple9" : "apple7";
}
