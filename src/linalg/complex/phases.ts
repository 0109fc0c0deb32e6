/** The phases of complex eigenvectors and singular vectors, which a matrix does not determine. */
import { noGrad } from "../../autograd/modes.ts";
import { AutogradError } from "../../autograd/node.ts";
import { imag } from "../../ops/complex/parts.ts";
import { abs, sub } from "../../ops/elementwise/arithmetic.ts";
import { tril, triu } from "../../ops/indexing/triangle.ts";
import { amax } from "../../ops/reduction/extrema.ts";
import { diagonal } from "../../ops/view/diagonal.ts";
import { allExamples, batchOf } from "../../tensor/batched.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Returns matrices with all elements off the diagonal set to 0. */
export const diagonalPart = (x: Tensor): Tensor => tril(triu(x));

/** Returns matrices with the diagonal set to 0. */
export const withoutDiagonal = (x: Tensor): Tensor => sub(x, diagonalPart(x));

/** PyTorch's tolerance. */
const TOLERANCE = 1e-2;

/**
 * Checks that a function does not depend on the phases of vectors: the diagonal of the inner products of vectors and
 * their gradients is real then.
 *
 * @param products Vᴴ V̄; for singular vectors Uᴴ Ū + Vᴴ V̄
 * @throws {AutogradError} `dependsOnPhase`
 */
export function checkPhases(operation: string, products: Tensor): void {
  if (!isComplex(products.dtype) || products.size === 0) return;
  const all = batchOf(products) ? allExamples(products) : products;
  if (all.storage.isAbstract) return;
  const largest = noGrad(() => amax(abs(imag(diagonal(all, { dim1: -2, dim2: -1 })))).item()) as number;
  if (!(largest > TOLERANCE)) return;
  throw new AutogradError(
    operation,
    "dependsOnPhase",
    "expected a function that does not depend on the phases of the vectors, which the matrix does not determine, " +
      `got one whose derivative along a phase is ${largest}; use absolute values, or products of a vector and its ` +
      "conjugate",
  );
}
