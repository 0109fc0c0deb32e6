import { needsGradient } from "../autograd/record.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { capturing } from "./capture.ts";
import { liftingOf } from "./lifted.ts";
import { firstBackend } from "./registry.ts";

/**
 * Whether a native call of the cpu backend may replace a composition of operations if its gradient is recorded: it has
 * no rule for `vmap`, and ONNX files need the composition.
 */
export const hasOnlyCpu = (...operands: readonly Tensor[]): boolean =>
  firstBackend() === "cpu" && capturing() === undefined && liftingOf(operands, undefined) === undefined;

/** As {@link hasOnlyCpu}, for a native call without a gradient. */
export const fusesOnCpu = (...operands: readonly Tensor[]): boolean =>
  hasOnlyCpu(...operands) && !needsGradient(...operands);
