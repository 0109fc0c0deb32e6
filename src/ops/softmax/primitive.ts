/** The primitive of softmax and log-softmax along an axis, and of their gradients. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf } from "../../backend/fields.ts";
import { slicesFor } from "../../backend/metal/slices.ts";

/**
 * Gradients are computed from the result y and its gradient g: y (g − Σ g y) for softmax, g − exp(y) Σ g for
 * logSoftmax.
 */
export const softmaxes = enumeration("Softmax", ["softmax", "logSoftmax", "softmaxGradient", "logSoftmaxGradient"]);
export type SoftmaxName = NameOf<typeof softmaxes>;

export interface SoftmaxAttributes {
  readonly axis: number;
}

/** Without a second operand, y is x. */
export const softmaxCall = cpuCall("softmax", { operation: oneOf(softmaxes), dtype, slices: slices(3) }, [
  "x",
  "y",
  "out",
]);

/** The slices of x, y and out. */
export const softmaxParameters = slicesFor(3);
