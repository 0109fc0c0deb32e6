/** Conversion between degrees and radians. */
import { underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "./arithmetic.ts";
import type { FloatOf } from "./types.ts";

/**
 * Converts degrees to radians: x · π / 180. Integers become float32. @see {@link rad2deg}
 *
 * @returns a tensor of x's shape
 *
 * @example
 * deg2rad(tensor([0, 90, 180])); // float32 [0, 1.570796, 3.141593]
 */
export function deg2rad<D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>>;
export function deg2rad(...values: unknown[]): Tensor {
  const { x } = deg2radParameters(values);
  return underName("deg2rad", () => mul(x, Math.PI / 180));
}
deg2rad.method = "float" as const;
const deg2radParameters = parameters("deg2rad", { x: operand(aTensor) });

/**
 * Converts radians to degrees: x · 180 / π. Integers become float32. @see {@link deg2rad}
 *
 * @returns a tensor of x's shape
 *
 * @example
 * rad2deg(tensor([0, 1])); // float32 [0, 57.29578]
 */
export function rad2deg<D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>>;
export function rad2deg(...values: unknown[]): Tensor {
  const { x } = rad2degParameters(values);
  return underName("rad2deg", () => mul(x, 180 / Math.PI));
}
rad2deg.method = "float" as const;
const rad2degParameters = parameters("rad2deg", { x: operand(aTensor) });
