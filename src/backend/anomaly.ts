import { ambient, withAmbient } from "../ambient.ts";
import { OrchardError } from "../errors.ts";
import { isFloat } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** An operation made NaN out of operands that had none (`detectAnomaly`). */
export class AnomalyError extends OrchardError {
  override readonly name = "AnomalyError";
}

/** @throws {AnomalyError} where an output holds NaN and no input does. */
export function checkForAnomaly(operation: string, inputs: readonly Tensor[], outputs: readonly Tensor[]): void {
  const made = outputs.findIndex(holdsNaN);
  if (made < 0 || inputs.some(holdsNaN)) return;
  const { within } = ambient();
  const operands = inputs.map((input) => input.describe()).join(", ");
  throw new AnomalyError(
    `${within}${operation}`,
    "nan",
    `it made the first NaN, in result ${made} (${outputs[made]!.describe()}), from ${operands || "no operands"} without NaN`,
  );
}

function holdsNaN(tensor: Tensor): boolean {
  if (!isFloat(tensor.dtype)) return false;
  return withAmbient({ detectAnomaly: false }, () => (tensor.dataSync() as Float32Array).some(Number.isNaN));
}
