import { needsGradient } from "../autograd/record.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { capturing } from "./capture.ts";
import { liftingOf } from "./lifted.ts";
import type { BackendName } from "./names.ts";
import { firstBackend } from "./registry.ts";

/**
 * Whether a native call of the cpu backend may replace a composition of operations if its gradient is recorded: it has
 * no rule for `vmap`, and ONNX files need the composition.
 */
export const hasOnlyCpu = (...operands: readonly Tensor[]): boolean => hasOnly(["cpu"], operands);

const hasOnly = (backends: readonly BackendName[], operands: readonly Tensor[]): boolean =>
  backends.includes(firstBackend()) && capturing() === undefined && liftingOf(operands, undefined) === undefined;

/** As {@link hasOnlyCpu}, for a native call without a gradient. */
export const fusesOnCpu = (...operands: readonly Tensor[]): boolean => fuses(["cpu"], ...operands);

/** As {@link fusesOnCpu}, for an operation of some backends. */
export const fuses = (backends: readonly BackendName[], ...operands: readonly Tensor[]): boolean =>
  hasOnly(backends, operands) && !needsGradient(...operands);
