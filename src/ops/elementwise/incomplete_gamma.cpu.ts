/** The incomplete gamma functions and `zeta` as one call, on cpu. Other backends compose them of other operations. */
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, oneOf, real, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** P(a, x), Q(a, x), the zeta function of a at x, or the derivative of ψ of an order at x. */
export const gammaPairs = enumeration("GammaPair", ["lower", "upper", "zeta", "polygamma"]);

interface GammaPairAttributes {
  readonly function: NameOf<typeof gammaPairs>;
  readonly order: number;
}

const gammaPairCall = cpuCall(
  "gammaPair",
  { dtype, function: oneOf(gammaPairs), order: real, offsets: array(whole, 3), count: whole },
  ["a", "x", "output"],
);

const cpu: Implementation<GammaPairAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [a, x], outputs: [output], attributes }) {
    const offsets = [a.offset, x.offset, output.offset];
    const block = { dtype: output.dtype, ...attributes, offsets, count: output.size };
    gammaPairCall(operation, block, [a, x, output]);
  },
};

const elsewhere = { missing: "only cpu has a fused kernel; other backends compose it of other operations" } as const;

/** Inputs: a and x, contiguous, of one shape, in float32 or float64. */
export const gammaPairPrimitive = definePrimitive<GammaPairAttributes>({
  name: "gammaPair",
  family: "elementwise",
  implementations: { metal: elsewhere, cpu, reference: elsewhere },
});

/** Whether the primitive supports a call. */
export const hasGammaPair = (a: Tensor, x: Tensor): boolean =>
  firstBackend() === "cpu" && !isComplex(x.dtype) && capturing() === undefined && !liftingOf([a, x], undefined);
