/** The primitive of inverses from Cholesky factors: in one call on cpu, composed of other operations elsewhere. */
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { isTransposed, matricesOf } from "../matrices.ts";

const inverseCall = cpuCall("choleskyInverse", { dtype, batch: whole, size: whole, transposed: flag }, [
  ...["factor", "inverse", "info"],
]);

const inverseCpu: Implementation<undefined, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [factor], outputs: [inverse, info] }) {
    const { batch, rows: size } = matricesOf(factor);
    const block = { dtype: factor.dtype, batch, size, transposed: isTransposed(factor) };
    inverseCall(operation, block, [factor, inverse, info]);
  },
};

const elsewhere = { missing: "only cpu has a fused kernel; other backends compose it of other operations" } as const;
/**
 * Input: lower factors, dense or transposed. Outputs: the inverses, dense, and the first zero on the diagonal of each
 * factor, counted from 1, or 0.
 */
export const inversePrimitive = definePrimitive<undefined>({
  ...{ name: "choleskyInverse", family: "linalg" },
  implementations: { metal: elsewhere, cpu: inverseCpu, reference: elsewhere },
});

/** Larger factors are inverted faster by blocks, with products of matrices. */
const LARGEST = 256;

/** Whether the primitive can invert factors. */
export const hasInverseKernel = (x: Tensor): boolean =>
  x.shape.at(-1)! <= LARGEST &&
  firstBackend() === "cpu" &&
  !isComplex(x.dtype) &&
  capturing() === undefined &&
  liftingOf([x], undefined) === undefined;
