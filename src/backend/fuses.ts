import { needsGradient } from "../autograd/record.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { capturing } from "./capture.ts";
import { liftingOf } from "./lifted.ts";
import { firstBackend } from "./registry.ts";

/**
 * Whether a native call of the cpu backend may replace a composition of operations: it has no rules for gradients and
 * `vmap`, and ONNX files need the composition.
 */
export const fusesOnCpu = (...operands: readonly Tensor[]): boolean =>
  firstBackend() === "cpu" &&
  capturing() === undefined &&
  !needsGradient(...operands) &&
  liftingOf(operands, undefined) === undefined;
