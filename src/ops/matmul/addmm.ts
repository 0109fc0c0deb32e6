import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkFactors, checkRanks, checkSameDType, factors } from "./checks.ts";
import { productWithInput } from "./product.ts";

/** Options of {@link addmm}: the factors of `beta · input + alpha · (a · b)`. */
export interface AddmmOptions {
  /** Factor of the input; 0 ignores the input, even NaN and infinity. Default 1. */
  beta?: number | undefined;
  /** Factor of the product. Default 1. */
  alpha?: number | undefined;
}

/** @internal Kinds and defaults of {@link AddmmOptions}. */
export const scale = { beta: named(someNumber, 1), alpha: named(someNumber, 1) } as const;

/**
 * Computes `beta · input + alpha · (a · b)`, as PyTorch's `addmm`, in one operation: floats are rounded once.
 *
 * @param input broadcasts to [m, n], such as a bias of shape [n]
 * @param a [m, k]
 * @param b [k, n]
 *
 * @example
 * addmm(tensor([1, 2]), tensor([[1, 0], [0, 1]]), tensor([[5, 6], [7, 8]]), { beta: 10 }); // [[15, 26], [17, 28]]
 *
 * @throws {ShapeError} if a or b is not a matrix, inner sizes differ, or the input does not broadcast to the result.
 * @throws {DTypeError} if dtypes differ, and for bool.
 * @throws {ArgumentError} for a fractional factor with an integer dtype.
 */
export function addmm<D extends DType>(input: Tensor<D>, a: Tensor<D>, b: Tensor<D>, options?: AddmmOptions): Tensor<D>;
export function addmm(...values: unknown[]): Tensor {
  const { input, a, b, beta, alpha } = addmmParameters(values);
  checkSameDType("addmm", [input, a, b]);
  checkRanks("addmm", 2, "matrices", [a, b]);
  checkFactors("addmm", a, b);
  checkInput("addmm", input, [a.shape[0], b.shape[1]]);
  checkScale("addmm", { beta, alpha }, a.dtype);
  return productWithInput(input, a, b, { alpha, beta });
}
addmm.method = "same" as const;
const addmmParameters = parameters("addmm", {
  input: operand(aTensor),
  ...factors,
  ...scale,
});

/** @internal Checks the input. @throws {ShapeError} for an input that does not broadcast to a product's shape */
export function checkInput(operation: string, input: Tensor, shape: readonly number[]): void {
  const lead = shape.length - input.rank;
  if (lead >= 0 && input.shape.every((size, axis) => size === 1 || size === shape[axis + lead])) return;
  throw new ShapeError(
    operation,
    "shapesDiffer",
    `expected an input that broadcasts to the product's shape ${formatShape(shape)}, got ${input.describe()}`,
  );
}

/** @internal Checks the factors. @throws {ArgumentError} for fractional factors with an integer dtype */
export function checkScale(operation: string, factorsByName: Required<AddmmOptions>, dtype: DType): void {
  for (const [name, value] of Object.entries(factorsByName))
    if (!(isFloat(dtype) || Number.isSafeInteger(value)))
      throw new ArgumentError(
        operation,
        "invalidFactor",
        `expected ${name} to be a whole number for ${dtype}, got ${value}`,
      );
}
