/** Vandermonde matrices in one call of the cpu backend, without a gradient. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { dtype, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

const vanderCall = cpuCall("vander", { dtype, rows: whole, columns: whole, offset: whole }, ["x", "out"]);

const vanderCpu: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [out] }) {
    vanderCall(operation, { dtype: x.dtype, rows: x.size, columns: lastElement(out.shape), offset: x.offset }, [
      x,
      out,
    ]);
  },
};

const vanderPrimitive = definePrimitive({
  name: "vander",
  family: "linalg",
  implementations: { metal: onlyCpuFuses, cpu: vanderCpu, reference: onlyCpuFuses },
});

/** Whether {@link vanderOf} applies to floats or int64. */
export const hasVanderKernel = (x: Tensor): boolean => !isComplex(x.dtype) && fusesOnCpu(x);

export const vanderOf = (x: Tensor, columns: number): Tensor =>
  execute(vanderPrimitive, [contiguous(x)], [...x.shape, columns], x.dtype, undefined, "vander");
