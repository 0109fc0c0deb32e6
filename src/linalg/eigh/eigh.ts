import { needsGradient, record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { choice } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { eye } from "../../ops/creation/eye.ts";
import { add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { div } from "../../ops/elementwise/division.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { type DType, isComplex, type RealOf, realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkPhases, withoutDiagonal } from "../complex/phases.ts";
import { checkInfo } from "../info.ts";
import { dense, isTransposed, mH, mT, squareOperand } from "../matrices.ts";
import { eighCpu } from "./eigh.cpu.ts";
import { eighMetal } from "./eigh.metal.ts";
import { eighReference } from "./eigh.reference.ts";
import type { EighAttributes } from "./primitive.ts";

const eighPrimitive = definePrimitive<EighAttributes>({
  name: "eigh",
  family: "linalg",
  implementations: { metal: eighMetal, cpu: eighCpu, reference: eighReference },
});

/** Options of {@link eigh} and {@link eigvalsh}. */
export interface EighOptions {
  /** The triangle of A that is read: the lower or the upper one. Default `"L"`. */
  UPLO?: "L" | "U";
}

/** Eigenvalues in ascending order, with eigenvectors in the same order. */
export interface EighResult<D extends DType = DType> {
  /** […, n] */
  readonly eigenvalues: Tensor<RealOf<D>>;
  /** […, n, n]: one eigenvector per column. */
  readonly eigenvectors: Tensor<D>;
}

const declared = { a: operand(aTensor), UPLO: optional(choice("L", "U"), "L") } as const;
const eighParameters = parameters("eigh", declared);
const eigvalshParameters = parameters("eigvalsh", declared);

/**
 * Computes the eigenvalues and eigenvectors of symmetric or Hermitian matrices: A = V diag(λ) Vᴴ with V unitary and λ
 * in ascending order. Only one triangle of A is read. The element of largest absolute value in each eigenvector, the
 * first on ties, is positive.
 *
 * The gradient is a symmetric matrix. The gradient of eigenvectors divides by λⱼ − λᵢ: it is large if two eigenvalues
 * are close, and infinite or NaN if they are equal, as the eigenvectors are then not unique. The gradient of the
 * eigenvalues alone is always finite. The differentiated function must not depend on the signs of the eigenvectors.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns `eigenvalues` […, n] and `eigenvectors` […, n, n], of the dtype of `a`
 *
 * @example
 * linalg.eigh(tensor([[2, 1], [1, 2]])).eigenvalues; // float32 [1, 3]
 *
 * @throws {LinAlgError} for a matrix with an element that is not finite, naming it and the row, or if the iteration
 * does not converge; on metal only once the host reads a tensor that depends on the results. @throws {ShapeError} for a
 * matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function eigh<D extends DType>(a: Tensor<D>, ...options: Given<EighOptions, ["UPLO"]>): EighResult<D>;
export function eigh(...values: unknown[]): EighResult {
  const { a, UPLO } = eighParameters(values);
  const { eigenvalues, eigenvectors } = decompose("eigh", squareOperand("eigh", a), UPLO === "U");
  return { eigenvalues: toDType(eigenvalues, realDType(a.dtype)), eigenvectors: toDType(eigenvectors, a.dtype) };
}

/**
 * Computes the eigenvalues of symmetric or Hermitian matrices, in ascending order. It is faster than {@link eigh},
 * because it does not compute eigenvectors, unless `a` requires a gradient. The gradient is finite for repeated
 * eigenvalues too; a second-order gradient is not.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, n], of the dtype of `a`
 *
 * @example
 * linalg.eigvalsh(tensor([[2, 1], [1, 2]])); // float32 [1, 3]
 *
 * @throws {LinAlgError} as {@link eigh}. @throws {ShapeError} for a matrix that is not square.
 * @throws {DTypeError} if the dtype is not a float.
 */
export function eigvalsh<D extends DType>(a: Tensor<D>, ...options: Given<EighOptions, ["UPLO"]>): Tensor<RealOf<D>>;
export function eigvalsh(...values: unknown[]): Tensor {
  const { a, UPLO } = eigvalshParameters(values);
  const matrix = squareOperand("eigvalsh", a);
  const upper = UPLO === "U";
  const eigenvalues = needsGradient(matrix)
    ? decompose("eigvalsh", matrix, upper).eigenvalues
    : run("eigvalsh", matrix, { upper, vectors: false })[0];
  return toDType(eigenvalues, realDType(a.dtype));
}

/** Computes λ and V of float32, float64 or complex matrices, and records the gradient. */
function decompose(operation: string, a: Tensor, upper: boolean): Record<keyof EighResult, Tensor> {
  const [eigenvalues, eigenvectors] = run(operation, a, { upper, vectors: true }) as [Tensor, Tensor];
  const results = [eigenvalues, eigenvectors] as const;
  record(
    operation,
    [a],
    results,
    results,
    ([ofValues, ofVectors], [values, vectors]) => [gradientOf(operation, ofValues, ofVectors, values, vectors)],
    "none",
  );
  return { eigenvalues, eigenvectors };
}

/**
 * With K the anti-Hermitian part of Vᴴ V̄, the gradient is V (diag(λ̄) + K / E) Vᴴ, where E[i, j] = λⱼ − λᵢ and K's
 * diagonal is 0. Source: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
 * differentiation", 2008, section 3.1, with the gradient projected on the tangent space of orthogonal matrices, as in
 * PyTorch's linalg_eig_backward.
 */
function gradientOf(
  operation: string,
  ofValues: Tensor | null,
  ofVectors: Tensor | null,
  values: Tensor,
  vectors: Tensor,
): Tensor | null {
  const parts: Tensor[] = [];
  if (ofValues !== null) parts.push(mul(vectors, unsqueeze(ofValues, -2)));
  if (ofVectors !== null) {
    const product = matmul(mH(vectors), ofVectors);
    checkPhases(operation, product);
    const skew = mul(sub(product, mH(product)), 0.5);
    const antisymmetric = isComplex(skew.dtype) ? withoutDiagonal(skew) : skew;
    const gaps = sub(unsqueeze(values, -2), unsqueeze(values, -1));
    const divisors = add(gaps, eye(lastElement(values.shape), { dtype: values.dtype }));
    parts.push(matmul(vectors, div(antisymmetric, divisors)));
  }
  const [first, second] = parts;
  if (first === undefined) return null;
  return matmul(second === undefined ? first : add(first, second), mH(vectors));
}

/** Runs the primitive, and returns the eigenvalues, and the eigenvectors if they are computed. */
function run(operation: string, a: Tensor, { upper, vectors }: EighAttributes): [Tensor, ...Tensor[]] {
  const size = lastElement(a.shape);
  // Avoids a copy by reading the other triangle of the transpose. For a complex matrix, that triangle would be
  // conjugated.
  const isFlipped = !isComplex(a.dtype) && isTransposed(a);
  const [eigenvalues, info, ...eigenvectors] = executeMany(
    eighPrimitive,
    [dense(isFlipped ? mT(a) : a)],
    [
      { shape: a.shape.slice(0, -1), dtype: realDType(a.dtype) },
      { shape: a.shape.slice(0, -2), dtype: "int32" },
      ...(vectors ? [{ shape: a.shape, dtype: a.dtype }] : []),
    ],
    { upper: upper !== isFlipped, vectors },
    operation,
  );
  const problem = (code: number): string =>
    code <= size
      ? `has an element that is not finite, in row ${code}`
      : "has eigenvalues to which the iteration did not converge";
  checkInfo(operation, info, problem, [eigenvalues, ...eigenvectors]);
  return [eigenvalues, ...eigenvectors];
}
