import { isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { lastElement } from "../../core/collections.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { conjugate } from "../../ops/complex/part.ts";
import { complexOf, imag } from "../../ops/complex/parts.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { arange } from "../../ops/creation/arange.ts";
import { zerosLike } from "../../ops/creation/full.ts";
import { abs, add, mul, sign, sub } from "../../ops/elementwise/arithmetic.ts";
import { eq, lt } from "../../ops/elementwise/comparison.ts";
import { log } from "../../ops/elementwise/logarithm.ts";
import { where } from "../../ops/elementwise/where.ts";
import { amax } from "../../ops/reduction/extrema.ts";
import { prod } from "../../ops/reduction/prod.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { diagonal } from "../../ops/view/diagonal.ts";
import { embed } from "../../ops/view/embed.ts";
import { expand } from "../../ops/view/expand.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { type DType, isComplex, type RealDType, type RealOf, realDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { epsilonOf, squareOperand } from "../matrices.ts";
import { factorize, type LuFactors, permuteRows, unitLower } from "./factor.ts";
import { determinantOf, logarithmOf } from "./results.cpu.ts";
import { solveFactored } from "./solve.ts";

/** Determinants as signs and logarithms of absolute values. */
export interface SignedLog<D extends DType = DType> {
  /**
   * The sign: 1, −1, or 0 for a singular matrix; it has the shape of the batch and no gradient. For complex matrices,
   * it is a number of absolute value 1, or 0, and has a gradient.
   */
  readonly sign: Tensor<D>;
  /** log |det A|, of the shape of the batch; −∞ for a singular matrix. */
  readonly logabsdet: Tensor<RealOf<D>>;
}

const declared = { a: operand(aTensor) } as const;
const detParameters = parameters("det", declared);
const slogdetParameters = parameters("slogdet", declared);
const logdetParameters = parameters("logdet", declared);

/**
 * Computes the determinant of square matrices, as the product of the pivots of an LU factorization; 1 for an empty
 * matrix. It may overflow; {@link slogdet} does not.
 *
 * The gradient is the matrix of cofactors, det(A) A⁻ᵀ. If a pivot is 0, the gradient is computed from a nearby matrix,
 * in which zero pivots are replaced by ε times the largest element of A. With `createGraph`, they are replaced by √ε
 * times that element, so that second-order gradients stay finite.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […], of the dtype of `a`
 *
 * @example
 * linalg.det(tensor([[1, 2], [3, 4]])); // float32 -2
 *
 * @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function det<D extends DType>(a: Tensor<D>): Tensor<D>;
export function det(...values: unknown[]): Tensor {
  const { a } = detParameters(values);
  const matrix = squareOperand("det", a);
  return tidy(() => {
    const factors = noGrad(() => factorize("det", matrix, true));
    return toDType(determinant(matrix, factors), a.dtype);
  });
}

/**
 * Computes the sign and the logarithm of the absolute value of the determinant of square matrices, without overflow.
 * The gradient of the logarithm is A⁻ᵀ: infinity or NaN for a singular matrix.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 *
 * @example
 * linalg.slogdet(tensor([[0, 1], [1, 0]])); // { sign: -1, logabsdet: 0 }
 *
 * @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function slogdet<D extends DType>(a: Tensor<D>): SignedLog<D>;
export function slogdet(...values: unknown[]): SignedLog {
  const { a } = slogdetParameters(values);
  return tidy(() => {
    const result = signedLog("slogdet", squareOperand("slogdet", a));
    return { sign: toDType(result.sign, a.dtype), logabsdet: toDType(result.logabsdet, realDType(a.dtype)) };
  });
}

/**
 * Computes the logarithm of the determinant of square matrices: −∞ if the determinant is 0, NaN if it is negative. The
 * gradient is A⁻ᵀ.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […], of the dtype of `a`
 *
 * @example
 * linalg.logdet(tensor([[2, 0], [0, 0.5]])); // float32 0
 *
 * @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function logdet<D extends DType>(a: Tensor<D>): Tensor<D>;
export function logdet(...values: unknown[]): Tensor {
  const { a } = logdetParameters(values);
  return tidy(() => {
    const { sign: determinantSign, logabsdet } = signedLog("logdet", squareOperand("logdet", a));
    if (isComplex(a.dtype)) return add(log(determinantSign), logabsdet);
    return toDType(where(lt(determinantSign, 0), Number.NaN, logabsdet), a.dtype);
  });
}

function signedLog(operation: string, a: Tensor): SignedLog {
  const { lu, pivots } = noGrad(() => factorize(operation, a, true));
  const { sign: determinantSign, logabsdet } = noGrad(() =>
    hasNative(lu, pivots) ? logarithmOf(lu, pivots) : composedLogarithm(lu, pivots),
  );
  const inverseOf = (x: Tensor, scale: Tensor, factors: LuFactors): Tensor =>
    solveFactored(operation, x, scaledIdentity(scale, x), { ...factors, adjoint: true });
  if (!isComplex(a.dtype))
    record(operation, [a], [logabsdet], [a, lu, pivots], ([gradient], [x, factors, swaps]) => [
      inverseOf(x, gradient, { lu: factors, pivots: swaps }),
    ]);
  else
    record(
      operation,
      [a],
      [determinantSign, logabsdet],
      [a, lu, pivots, determinantSign],
      ([ofSign, ofLog], [x, factors, swaps, phase]) => [
        conjugate(inverseOf(x, scaleOfLog(ofSign, ofLog, phase), { lu: factors, pivots: swaps })),
      ],
      "none",
    );
  return { sign: determinantSign, logabsdet };
}

/** Whether one native call computes determinants from these factors. */
const hasNative = (lu: Tensor, pivots: Tensor): boolean => !isComplex(lu.dtype) && fusesOnCpu(lu, pivots);

function composedLogarithm(lu: Tensor, pivots: Tensor<"int32">): { sign: Tensor; logabsdet: Tensor<RealDType> } {
  const pivotValues = diagonalOf(lu);
  return {
    sign: mul(parity(pivots, realDType(lu.dtype)), prod(sign(pivotValues), { dim: -1 })),
    logabsdet: sum(log(abs(pivotValues)), { dim: -1 }),
  };
}

/**
 * The conjugate of the gradient of log det A = log |det A| + i arg det A. The sign is exp(i arg), so the gradient of
 * arg is Im(conj(sign) · gradient).
 */
function scaleOfLog(ofSign: Tensor | null, ofLog: Tensor | null, phase: Tensor): Tensor {
  const angle = ofSign && imag(mul(conjugate(ofSign), phase));
  return complexOf("slogdet", ofLog ?? zerosLike(angle!), angle ?? zerosLike(ofLog!));
}

/** The sign of the permutation: −1 for an odd number of swaps. */
function parity(pivots: Tensor<"int32">, dtype: DType): Tensor {
  const isKept = eq(pivots, arange(1, lastElement(pivots.shape) + 1, { dtype: "int32" }));
  return prod(sub(mul(toDType(isKept, dtype), 2), 1), { dim: -1 });
}

const diagonalOf = (x: Tensor): Tensor => diagonal(x, { dim1: -2, dim2: -1 });

/** Returns matrices of the shape of `like`, each with one of the scalars on its diagonal and 0 elsewhere. */
function scaledIdentity(scalars: Tensor, like: Tensor): Tensor {
  return embed(expand(unsqueeze(scalars, -1), like.shape.slice(0, -1)), like.shape, diagonalOf);
}

/** The determinant of A = P L U. The gradient flows to A. */
function determinant(a: Tensor, { lu, pivots }: LuFactors): Tensor {
  const result = noGrad(() =>
    hasNative(lu, pivots)
      ? determinantOf(lu, pivots)
      : mul(parity(pivots, realDType(a.dtype)), prod(diagonalOf(lu), { dim: -1 })),
  );
  record("det", [a], [result], [a, lu, pivots], ([gradient], [savedA, factors, swaps]) => [
    savedA.size === 0 ? savedA : cofactors(gradient, savedA, { lu: factors, pivots: swaps }),
  ]);
  return result;
}

/**
 * det(A) A⁻ᵀ times the gradient, with zero pivots perturbed. Cofactors are polynomials in the elements, so a small
 * perturbation changes them little. The right side of the system is multiplied by the determinant, so that a
 * determinant of 0 gives 0, however large the inverse is.
 */
function cofactors(gradient: Tensor, a: Tensor, { lu, pivots }: LuFactors): Tensor {
  const epsilon = epsilonOf(a.dtype);
  const isRecorded = isGradEnabled();
  const { factors, moved } = noGrad(() => {
    const change = pivotChange(a, lu, isRecorded ? Math.sqrt(epsilon) : epsilon);
    return {
      factors: { lu: add(lu, embed(change, lu.shape, diagonalOf)), pivots },
      moved: isRecorded ? permuteRows(mul(unitLower(lu), unsqueeze(change, -2)), pivots, true) : undefined,
    };
  });
  const near = moved ? add(a, moved) : a; // P L (U + diag(change))
  const right = scaledIdentity(mul(gradient, determinant(near, factors)), a);
  return solveFactored("det", near, right, { ...factors, adjoint: true });
}

/** The perturbation of pivots: `part` times the largest element of A (1 if A is 0) for zero pivots, 0 for others. */
function pivotChange(a: Tensor, lu: Tensor, part: number): Tensor {
  const largest = amax(abs(a), { dim: [-2, -1] });
  const scale = mul(where(eq(largest, 0), 1, largest), part);
  const pivots = diagonalOf(lu);
  return where(eq(pivots, 0), expand(unsqueeze(scale, -1), pivots.shape), 0);
}
