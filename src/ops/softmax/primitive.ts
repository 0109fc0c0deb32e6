/** The primitive of softmax along an axis, of its logarithm and of both gradients. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { dtype, oneOf } from "../../backend/fields.ts";
import { slicesFor } from "../../backend/metal/slices.ts";

/** A gradient is made from the gradient of the result and the result: y (g − Σ g y) and g − exp(y) Σ g. */
export const softmaxes = enumeration("Softmax", ["softmax", "logSoftmax", "softmaxGradient", "logSoftmaxGradient"]);
export type SoftmaxName = NameOf<typeof softmaxes>;

export interface SoftmaxAttributes {
  readonly axis: number;
}

/** Where there is no second operand y is x. */
export const softmaxCall = cpuCall("softmax", { operation: oneOf(softmaxes), dtype, slices: slices(3) }, [
  ...["x", "y", "out"],
]);

/** Of x, y and out. */
export const softmaxParameters = slicesFor(3);
