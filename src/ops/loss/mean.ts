/** The mean of a few losses as one operation on cpu and metal. */
import type { Implementation, MetalImplementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { dtype, whole } from "../../backend/fields.ts";
import { fuses } from "../../backend/fuses.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { struct } from "../../backend/metal/struct.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** More losses are summed faster by two calls, which use all threads and the processor's widest vectors, or the GPU. */
const MOST_LOSSES = 1 << 12;

const meanCall = cpuCall("meanLoss", { dtype, count: whole }, ["losses", "used", "mean", "divisor"]);

const meanCpu: Implementation<undefined, [Tensor, Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [losses, used], outputs: [mean, divisor] }) {
    meanCall(operation, { dtype: losses.dtype, count: losses.size }, [losses, used, mean, divisor]);
  },
};

const THREADS = 256;
const meanParameters = struct("MeanLoss", { count: whole });

const meanMetal: MetalImplementation<undefined, [Tensor, Tensor], [Tensor, Tensor]> = {
  unsupported: noFloat64,
  run: ({ inputs, outputs }) =>
    launch({
      file: "loss/mean.metal",
      name: "mean_loss",
      operands: [...inputs.map(reads), ...outputs.map(writes)],
      parameters: meanParameters.bytes({ count: inputs[0].size }),
      threadgroups: 1,
      threadgroup: THREADS,
    }),
};

const meanPrimitive = definePrimitive({
  name: "meanLoss",
  family: "loss",
  implementations: {
    metal: meanMetal,
    cpu: meanCpu,
    reference: { missing: "reference composes the mean of losses of other operations" },
  },
});

/** Whether {@link meanOf} applies to new, dense tensors of float32 or float64. */
export const hasMeanKernel = (losses: Tensor, used: Tensor): boolean =>
  losses.size <= MOST_LOSSES && fuses(["cpu", "metal"], losses, used);

/** Computes Σ losses / Σ used, and the divisor. */
export function meanOf(losses: Tensor, used: Tensor): { output: Tensor; divisor: Tensor } {
  const spec = { shape: [], dtype: losses.dtype } as const;
  const [output, divisor] = tupleOf(executeMany(meanPrimitive, [losses, used], [spec, spec], undefined), 2);
  return { output, divisor };
}
