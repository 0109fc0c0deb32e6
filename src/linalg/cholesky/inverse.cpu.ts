/**
 * The primitive of `choleskyInverse`: one call on cpu. On other backends, the inverse is composed of other operations.
 */

import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { lastElement } from "../../core/collections.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { isTransposed, matricesOf } from "../matrices.ts";

const inverseCall = cpuCall("choleskyInverse", { dtype, batch: whole, size: whole, transposed: flag }, [
  "factor",
  "inverse",
  "info",
]);

const inverseCpu: Implementation<undefined, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [factor], outputs: [inverse, info] }) {
    const { batch, rows: size } = matricesOf(factor);
    const block = { dtype: factor.dtype, batch, size, transposed: isTransposed(factor) };
    inverseCall(operation, block, [factor, inverse, info]);
  },
};

/**
 * Input: lower factors […, n, n], contiguous or transposed. Outputs: the inverses […, n, n], contiguous; and info int32
 * […], the 1-based index of the first zero on each factor's diagonal, or 0 if there is none.
 */
export const inversePrimitive = definePrimitive<undefined>({
  name: "choleskyInverse",
  family: "linalg",
  implementations: { metal: onlyCpuFuses, cpu: inverseCpu, reference: onlyCpuFuses },
});

/** Above this size, the composed operations are faster, because they use blocked matrix products. */
const LARGEST = 256;

/** Whether the primitive supports these factors. */
export const hasInverseKernel = (x: Tensor): boolean =>
  lastElement(x.shape) <= LARGEST &&
  firstBackend() === "cpu" &&
  !isComplex(x.dtype) &&
  capturing() === undefined &&
  liftingOf([x], undefined) === undefined;
