import { someNumber } from "../../core/kinds.ts";
import { optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, create, creationOptions } from "./create.ts";
import { fillInto, fillPrimitive } from "./fill.ts";

/**
 * Returns the identity matrix: ones on the diagonal, zeros elsewhere.
 *
 * @param n the number of rows
 * @param m the number of columns, default n
 * @param options `dtype`: default float32
 * @returns [n, m]
 *
 * @example
 * eye(2, 3); // [[1, 0, 0], [0, 1, 0]]
 *
 * @throws {ShapeError} for sizes that are not whole numbers of at least 0.
 */
export function eye<D extends DType = "float32">(n: number, options?: CreationOptions<D>): Tensor<D>;
export function eye<D extends DType = "float32">(n: number, m: number, options?: CreationOptions<D>): Tensor<D>;
export function eye(...values: unknown[]): Tensor {
  const { n, m = n, dtype = "float32", ...options } = eyeParameters(values);
  checkCreation("eye", [n, m], dtype, options);
  const { requiresGrad, ...others } = options;
  const result = create("eye", fillPrimitive, [n, m], dtype, { value: 0 }, others);
  using diagonal = new Tensor(result.storage, dtype, [Math.min(n, m)], [m + 1]);
  fillInto(diagonal, 1);
  if (requiresGrad) result.requiresGrad = true;
  return result;
}
const eyeParameters = parameters("eye", {
  n: required(someNumber),
  m: optional(someNumber),
  ...creationOptions,
});
