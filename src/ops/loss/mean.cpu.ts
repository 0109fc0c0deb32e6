/** The mean of losses in one call of the cpu backend. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { dtype, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** More losses are summed faster by two calls, which use all threads and the processor's widest vectors. */
const MOST_LOSSES = 1 << 12;

const meanCall = cpuCall("meanLoss", { dtype, count: whole }, ["losses", "used", "mean", "divisor"]);

const meanCpu: Implementation<undefined, [Tensor, Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [losses, used], outputs: [mean, divisor] }) {
    meanCall(operation, { dtype: losses.dtype, count: losses.size }, [losses, used, mean, divisor]);
  },
};

const meanPrimitive = definePrimitive({
  name: "meanLoss",
  family: "loss",
  implementations: { metal: onlyCpuFuses, cpu: meanCpu, reference: onlyCpuFuses },
});

/** Whether {@link meanOf} applies to new, dense tensors of float32 or float64. */
export const hasMeanKernel = (losses: Tensor, used: Tensor): boolean =>
  losses.size <= MOST_LOSSES && fusesOnCpu(losses, used);

/** Computes Σ losses / Σ used, and the divisor. */
export function meanOf(losses: Tensor, used: Tensor): { output: Tensor; divisor: Tensor } {
  const spec = { shape: [], dtype: losses.dtype } as const;
  const [output, divisor] = tupleOf(executeMany(meanPrimitive, [losses, used], [spec, spec], undefined), 2);
  return { output, divisor };
}
