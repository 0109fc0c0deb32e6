/** The incomplete gamma functions as one call, on cpu. Other backends compose them of other operations. */
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Attributes of the primitive: P(a, x), or Q(a, x) with `isUpper`. */
export interface IncompleteGammaAttributes {
  readonly isUpper: boolean;
}

const incompleteGammaCall = cpuCall(
  "incompleteGamma",
  { dtype, isUpper: flag, offsets: array(whole, 3), count: whole },
  ["a", "x", "output"],
);

const cpu: Implementation<IncompleteGammaAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [a, x], outputs: [output], attributes: { isUpper } }) {
    const offsets = [a.offset, x.offset, output.offset];
    const block = { dtype: output.dtype, isUpper, offsets, count: output.size };
    incompleteGammaCall(operation, block, [a, x, output]);
  },
};

const elsewhere = { missing: "only cpu has a fused kernel; other backends compose it of other operations" } as const;

/** Inputs: a and x, contiguous, of one shape, in float32 or float64. */
export const incompleteGammaPrimitive = definePrimitive<IncompleteGammaAttributes>({
  name: "incompleteGamma",
  family: "elementwise",
  implementations: { metal: elsewhere, cpu, reference: elsewhere },
});

/** Whether the primitive supports a call. */
export const hasIncompleteGamma = (a: Tensor, x: Tensor): boolean =>
  firstBackend() === "cpu" && !isComplex(x.dtype) && capturing() === undefined && !liftingOf([a, x], undefined);
