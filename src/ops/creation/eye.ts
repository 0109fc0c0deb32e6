import type { DType } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, create } from "./create.ts";
import { fillInto, fillPrimitive } from "./fill.ts";

/**
 * Ones on the diagonal, zeros elsewhere: the identity matrix.
 *
 * @param n rows
 * @param m columns, default as many as rows
 * @param options `dtype`, by default float32
 *
 * @example
 * eye(2, 3); // [[1, 0, 0], [0, 1, 0]]
 *
 * @throws {ShapeError} for sizes that are no whole numbers of at least 0.
 */
export function eye<D extends DType = "float32">(n: number, options?: CreationOptions<D>): Tensor<D>;
export function eye<D extends DType = "float32">(n: number, m: number, options?: CreationOptions<D>): Tensor<D>;
export function eye<D extends DType = "float32">(
  n: number,
  second?: number | CreationOptions<D>,
  third: CreationOptions<D> = {},
): Tensor<D> {
  const m = typeof second === "number" ? second : n;
  const options = typeof second === "object" ? second : third;
  const dtype = options.dtype ?? ("float32" as D);
  checkCreation("eye", [n, m], dtype, options);
  const { requiresGrad, ...others } = options;
  const result = create("eye", fillPrimitive, [n, m], dtype, { value: 0 }, others);
  using diagonal = new Tensor(result.storage, dtype, [Math.min(n, m)], [m + 1]);
  fillInto(diagonal, 1);
  if (requiresGrad) result.requiresGrad = true;
  return result;
}
