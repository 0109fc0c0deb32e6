import { noGrad } from "../../autograd/modes.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { conjugate } from "../../ops/complex/part.ts";
import type { ComplexFrom } from "../../ops/complex/parts.ts";
import { real } from "../../ops/complex/parts.ts";
import { eye } from "../../ops/creation/eye.ts";
import { add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { div } from "../../ops/elementwise/division.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { complexDType, type DType, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkPhases, diagonalPart } from "../complex/phases.ts";
import { checkInfo } from "../info.ts";
import { factorize } from "../lu/factor.ts";
import { solveFactored } from "../lu/solve.ts";
import { dense, mH, squareOperand } from "../matrices.ts";

interface EigAttributes {
  /** Whether eigenvectors are computed. */
  readonly vectors: boolean;
}

const lowered = { missing: "its results are complex, so it runs as the primitive complexEig" } as const;

/** The lowering is in complex/lowerings.ts, for real matrices too. */
const eigPrimitive = definePrimitive<EigAttributes>({
  name: "eig",
  family: "linalg",
  implementations: { metal: lowered, cpu: lowered, reference: lowered },
});

/** Eigenvalues, with eigenvectors in the same order. */
export interface EigResult<D extends DType = DType> {
  /**
   * […, n], complex, in no particular order. Conjugate eigenvalues of a real matrix are adjacent, with Im λ > 0 first.
   */
  readonly eigenvalues: Tensor<ComplexFrom<D>>;
  /** […, n, n], complex: one eigenvector of norm 1 per column. */
  readonly eigenvectors: Tensor<ComplexFrom<D>>;
}

const declared = { a: operand(aTensor) } as const;
const eigParameters = parameters("eig", declared);
const eigvalsParameters = parameters("eigvals", declared);

/**
 * Computes the eigenvalues and eigenvectors of square matrices, real or complex: A V = V diag(λ). The results are
 * complex. The element of largest absolute value in each eigenvector, the first on ties, is positive. For symmetric or
 * Hermitian matrices use {@link eigh}, which is faster and returns orthonormal vectors.
 *
 * The gradient solves a system with V, so it is infinite or NaN for a matrix without n independent eigenvectors, and
 * that of eigenvectors also divides by λⱼ − λᵢ. The differentiated function must not depend on the phases of the
 * eigenvectors.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns `eigenvalues` […, n] and `eigenvectors` […, n, n]: complex128 for float64 and complex128, else complex64
 *
 * @example
 * linalg.eig(tensor([[0, -1], [1, 0]])).eigenvalues; // complex64 [0+1i, 0-1i]
 *
 * @throws {LinAlgError} for a matrix with an element that is not finite, naming it, or if the iteration does not
 * converge. @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype is not a float or
 * complex. @throws {AutogradError} `dependsOnPhase` in backward, if the gradient depends on the eigenvectors' phases.
 */
export function eig<D extends DType>(a: Tensor<D>): EigResult<D>;
export function eig(...values: unknown[]): EigResult {
  const { a } = eigParameters(values);
  return decompose("eig", squareOperand("eig", a)) as EigResult;
}

/**
 * Computes the eigenvalues of square matrices, real or complex. It is faster than {@link eig}, because it does not
 * compute eigenvectors, unless `a` requires a gradient.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, n], complex128 for float64 and complex128, else complex64, in the order of {@link eig}
 *
 * @example
 * linalg.eigvals(tensor([[0, -1], [1, 0]])); // complex64 [0+1i, 0-1i]
 *
 * @throws {LinAlgError} as {@link eig}. @throws {ShapeError} for a matrix that is not square.
 * @throws {DTypeError} if the dtype is not a float or complex.
 */
export function eigvals<D extends DType>(a: Tensor<D>): Tensor<ComplexFrom<D>>;
export function eigvals(...values: unknown[]): Tensor {
  const { a } = eigvalsParameters(values);
  const matrix = squareOperand("eigvals", a);
  return needsGradient(matrix) ? decompose("eigvals", matrix).eigenvalues : run("eigvals", matrix, false)[0];
}

function decompose(operation: string, a: Tensor): { readonly eigenvalues: Tensor; readonly eigenvectors: Tensor } {
  const results = run(operation, a, true) as [Tensor, Tensor];
  const isReal = !isComplex(a.dtype);
  record(
    operation,
    [a],
    results,
    results,
    ([ofValues, ofVectors], [values, vectors]) => {
      const gradient = gradientOf(operation, ofValues, ofVectors, values, vectors);
      return [isReal && gradient ? real(gradient) : gradient];
    },
    "none",
  );
  return { eigenvalues: results[0], eigenvectors: results[1] };
}

/**
 * With M = Vᴴ V̄ and D the real diagonal of M, the gradient is V⁻ᴴ (diag(λ̄) + (M − Vᴴ V D) / Ē) Vᴴ, where E[i, j] = λⱼ
 * − λᵢ and the quotient's diagonal is 0. The term with D keeps the norms of the vectors at 1. Source: C. Boeddeker et
 * al., "On the computation of complex-valued gradients with application to statistically optimum beamforming", 2019,
 * 4.77, as in PyTorch's linalg_eig_backward.
 */
function gradientOf(
  operation: string,
  ofValues: Tensor | null,
  ofVectors: Tensor | null,
  values: Tensor,
  vectors: Tensor,
): Tensor | null {
  if (values.size === 0) return null;
  const adjoint = mH(vectors);
  const parts: Tensor[] = [];
  if (ofValues !== null)
    parts.push(mul(eye(lastElement(values.shape), { dtype: values.dtype }), unsqueeze(ofValues, -2)));
  if (ofVectors !== null) {
    const product = matmul(adjoint, ofVectors);
    checkPhases(operation, product);
    const lengths = real(sum(mul(conjugate(vectors), ofVectors), -2));
    const projected = sub(product, mul(matmul(adjoint, vectors), unsqueeze(lengths, -2)));
    const gaps = conjugate(sub(unsqueeze(values, -2), unsqueeze(values, -1)));
    const divisors = add(gaps, eye(lastElement(values.shape), { dtype: values.dtype }));
    parts.push(div(sub(projected, diagonalPart(projected)), divisors));
  }
  if (parts.length === 0) return null;
  const right = matmul(
    parts.reduce((total, part) => add(total, part)),
    adjoint,
  );
  const { lu, pivots } = noGrad(() => factorize(operation, adjoint, true)); // `right` may be abstract
  return solveFactored(operation, adjoint, right, { lu, pivots, adjoint: false });
}

function run(operation: string, a: Tensor, vectors: boolean): [Tensor, ...Tensor[]] {
  const dtype = complexDType(a.dtype);
  const [eigenvalues, info, ...eigenvectors] = executeMany(
    eigPrimitive,
    [dense(a)],
    [
      { shape: a.shape.slice(0, -1), dtype },
      { shape: a.shape.slice(0, -2), dtype: "int32" },
      ...(vectors ? [{ shape: a.shape, dtype }] : []),
    ],
    { vectors },
    operation,
  );
  const problem = (code: number): string =>
    code === 1 ? "has elements that are infinite or NaN" : "has eigenvalues to which the iteration did not converge";
  checkInfo(operation, info, problem, [eigenvalues, ...eigenvectors]);
  return [eigenvalues, ...eigenvectors];
}
