import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { ones } from "../../ops/creation/full.ts";
import { cat } from "../../ops/join/cat.ts";
import type { SumOf } from "../../ops/reduction/sum.ts";
import { cumprod } from "../../ops/scan/cumsum.ts";
import { expand } from "../../ops/view/expand.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { type DType, hasGradients } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { hasVanderKernel, vanderOf } from "./vander.cpu.ts";

/** Options of {@link vander}. */
export interface VanderOptions {
  /** The number of columns, at least 2. Default the number of elements. */
  n?: number;
}

/**
 * Computes Vandermonde matrices: out[…, i, j] = x[…, i]ʲ, for j from 0 to n − 1. Integers become int64.
 *
 * @param x […, m], of numbers
 * @returns […, m, n]
 *
 * @example
 * linalg.vander(tensor([1, 2, 3])); // float32 [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
 *
 * @throws {ShapeError} for a scalar. @throws {ArgumentError} if n is below 2. @throws {DTypeError} for bool.
 */
export function vander<D extends DType>(x: Tensor<D>, options?: VanderOptions): Tensor<SumOf<D>>;
export function vander(...values: unknown[]): Tensor {
  const { x, n = x.shape.at(-1) ?? 0 } = vanderParameters(values);
  if (x.rank === 0) throw new ShapeError("vander", "wrongRank", `expected at least one axis, got ${x.describe()}`);
  if (x.dtype === "bool") throw new DTypeError("vander", "bool", `expected numbers, got ${x.describe()}`);
  if (n < 2) throw new ArgumentError("vander", "invalidOption", `expected n to be at least 2, got ${n}`);
  const numbers = hasGradients(x.dtype) ? x : toDType(x, "int64");
  if (hasVanderKernel(numbers)) return tidy(() => vanderOf(numbers, n));
  const factors = expand(unsqueeze(numbers, -1), [...x.shape, n - 1]);
  return cat([ones([...x.shape, 1], { dtype: numbers.dtype }), cumprod(factors, -1)], -1);
}
const vanderParameters = parameters("vander", {
  x: operand(aTensor),
  n: named(aNumber({ holds: (n) => Number.isSafeInteger(n) && n >= 0, expected: "a whole number of at least 0" })),
});
