import { currentCapture } from "../observe/capture.ts";
import { tensor } from "../ops/creation/tensor.ts";
import type { DType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * Returns a number of an optimizer's step as an operand. While a step is recorded, it is a tensor. Each replay
 * recomputes its value, after counting the step.
 */
export function liveScalar(value: () => number, dtype: DType): Tensor | number {
  const capture = currentCapture();
  if (capture === null) return value();
  const scalar = tensor(value(), { dtype });
  capture.liveScalar(scalar.storage, dtype === "float64", value);
  return scalar;
}
