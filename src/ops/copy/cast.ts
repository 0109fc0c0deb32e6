import { record } from "../../autograd/record.ts";
import { DTypeError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { named, operand, parameters, required } from "../../core/parameters.ts";
import { type DType, integerRange, isComplex, isDType, isInteger } from "../../tensor/dtype.ts";
import { aDType, aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { partOf } from "../complex/part.ts";
import { copyPrimitive } from "./copy.ts";
import { executeElementwise } from "./layout.ts";

/** Options of {@link toDType}. */
export interface CastOptions {
  /**
   * The treatment of values that an integer dtype can't hold. With `"saturate"` (the default), floats become the
   * nearest number in range and NaN becomes 0; integers wrap around. With `"error"`, the first such value is an error;
   * this check runs on the CPU and waits for the device.
   */
  overflow?: "saturate" | "error" | undefined;
}

/**
 * Converts a tensor to another dtype; returns the tensor itself if it already has that dtype. Floats round to nearest,
 * ties to even. Floats are truncated to integers; values out of range become the nearest integer in range, and NaN
 * becomes 0. Integers wrap around. Bool is x ≠ 0. Real numbers become complex with the imaginary part 0.
 * PyTorch's `to`.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * toDType(tensor([1.9, -300]), "int8"); // int8 [1, -128]
 *
 * @throws {DTypeError} for an unknown dtype, and `overflow` with `{ overflow: "error" }` for a value that does not fit;
 * `complex` from a complex to a real dtype, which has no imaginary part: use `real`, `imag` or `abs`.
 */
export function toDType<D extends DType>(x: Tensor, dtype: D, options?: CastOptions): Tensor<D>;
export function toDType(x: Tensor, dtype: DType, ...options: unknown[]): Tensor {
  if (options.length === 0 && Tensor.isTensor(x) && isDType(dtype)) {
    x.checkAlive("toDType");
    return cast(x, dtype);
  }
  const { overflow, ...given } = castParameters([x, dtype, ...options]);
  if (given.x.dtype !== given.dtype) checkOverflow(given.x, given.dtype, overflow);
  return cast(given.x, given.dtype);
}

function cast(x: Tensor, dtype: DType): Tensor {
  if (x.dtype === dtype) return x;
  const output = executeElementwise(copyPrimitive, [x], x.shape, dtype, "toDType");
  const from = x.dtype;
  if (x.requiresGrad) record("toDType", [x], [output], [], ([gradient]) => [castGradient(gradient, from)], "none");
  return output;
}

/** If a real tensor was converted to complex, its gradient is the real part. */
const castGradient = (gradient: Tensor, dtype: DType): Tensor =>
  cast(isComplex(dtype) ? gradient : partOfComplex(gradient), dtype);

const partOfComplex = (x: Tensor): Tensor => (isComplex(x.dtype) ? partOf("real", x, 0) : x);

const castParameters = parameters("toDType", {
  x: operand(aTensor),
  dtype: required(aDType),
  overflow: named(choice("saturate", "error"), "saturate"),
});

function checkOverflow(x: Tensor, dtype: DType, overflow: "saturate" | "error"): void {
  if (overflow === "saturate" || !isInteger(dtype)) return;
  const [least, most] = integerRange(dtype);
  const data = x.dataSync();
  for (let index = 0; index < data.length; index++) {
    const value = data[index];
    const whole = typeof value === "number" ? Math.trunc(value) : value;
    if (whole >= least && whole <= most) continue;
    throw new DTypeError(
      "toDType",
      "overflow",
      `element ${index} is ${value}; ${dtype} holds whole numbers from ${least} to ${most}`,
    );
  }
}
