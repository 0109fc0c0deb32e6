import { record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { expand } from "../../ops/view/expand.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import { broadcastBatches, checkSameDType, dense, matrixOperand, squareOperand } from "../matrices.ts";
import { ldlFactorCpu, ldlSolveCpu } from "./ldl.cpu.ts";
import { ldlMetal } from "./ldl.metal.ts";
import { ldlFactorReference, ldlSolveReference } from "./ldl.reference.ts";

const factorPrimitive = definePrimitive<undefined>({
  name: "ldlFactor",
  family: "linalg",
  implementations: { metal: ldlMetal, cpu: ldlFactorCpu, reference: ldlFactorReference },
});

const solvePrimitive = definePrimitive<undefined>({
  name: "ldlSolve",
  family: "linalg",
  implementations: { metal: ldlMetal, cpu: ldlSolveCpu, reference: ldlSolveReference },
});

/** The factors of a symmetric matrix, A = P L D Lᵀ Pᵀ. */
export interface LdlFactors<D extends DType = DType> {
  /** […, n, n]: L below the blocks of D, which are on the diagonal; 0 above. */
  readonly ld: Tensor<D>;
  /**
   * int32 […, n], as in LAPACK, counted from 1. A 1 × 1 block has the number of the row with which its row was swapped.
   * A 2 × 2 block has the same number twice: minus the number of the row with which its second row was swapped.
   */
  readonly pivots: Tensor<"int32">;
}

/** {@link LdlFactors}, with the first zero block of each matrix. */
export interface LdlFactorsInfo<D extends DType = DType> extends LdlFactors<D> {
  /** int32, of the shape of the batch: the first 1 × 1 block that is 0, counted from 1; 0 if there is none. */
  readonly info: Tensor<"int32">;
}

const declared = { a: operand(aTensor) } as const;
const ldlFactorParameters = parameters("ldlFactor", declared);
const ldlFactorExParameters = parameters("ldlFactorEx", declared);
const ldlSolveParameters = parameters("ldlSolve", {
  ld: operand(aTensor),
  pivots: operand(aTensor),
  b: operand(aTensor),
});

/**
 * Computes the factorization A = P L D Lᵀ Pᵀ of symmetric matrices, definite or not, with Bunch-Kaufman pivoting. Only
 * the lower triangle of A is read. As in PyTorch, it has no gradient; {@link solve} has one.
 *
 * @param a […, n, n], of a float dtype; float16 and bfloat16 are computed in float32
 *
 * @example
 * const { ld, pivots } = linalg.ldlFactor(tensor([[0, 1], [1, 0]])); // one block of two: pivots [-2, -2]
 * linalg.ldlSolve(ld, pivots, tensor([[3], [5]])); // float32 [[5], [3]]
 *
 * @throws {LinAlgError} for a matrix with a zero block, naming both; {@link ldlFactorEx} returns `info` instead.
 * @throws {ShapeError} for a matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function ldlFactor<D extends DType>(a: Tensor<D>): LdlFactors<D>;
export function ldlFactor(...values: unknown[]): LdlFactors {
  const { a } = ldlFactorParameters(values);
  const { ld, pivots, info } = factorize("ldlFactor", a);
  checkInfo("ldlFactor", info, (at) => `is singular: element ${at} of D is 0`, [ld, pivots]);
  return { ld: toDType(ld, a.dtype), pivots };
}

/**
 * Computes the factorization as {@link ldlFactor} does, but returns `info` instead of throwing an error.
 *
 * @param a symmetric […, n, n]
 * @returns LD […, n, n], pivots int32 […, n], info int32 […]
 *
 * @example
 * linalg.ldlFactorEx(tensor([[1, 2], [2, 4]])).info.item(); // 2
 */
export function ldlFactorEx<D extends DType>(a: Tensor<D>): LdlFactorsInfo<D>;
export function ldlFactorEx(...values: unknown[]): LdlFactorsInfo {
  const { a } = ldlFactorExParameters(values);
  const { ld, pivots, info } = factorize("ldlFactorEx", a);
  return { ld: toDType(ld, a.dtype), pivots, info };
}

function factorize(operation: string, a: Tensor): LdlFactorsInfo {
  const { shape, dtype } = squareOperand(operation, a);
  const [ld, pivots, info] = executeMany(
    factorPrimitive,
    [dense(squareOperand(operation, a))],
    [
      { shape, dtype },
      { shape: shape.slice(0, -1), dtype: "int32" },
      { shape: shape.slice(0, -2), dtype: "int32" },
    ],
    undefined,
    operation,
  );
  return { ld, pivots, info };
}

/**
 * Solves A X = B from the factors that {@link ldlFactor} returns. A zero block gives infinity or NaN. Gradients of
 * every order flow to `b`; the factors have none.
 *
 * @param ld […, n, n], of a float dtype; float16 and bfloat16 are computed in float32
 * @param pivots int32 […, n]; pivots outside the matrix are ignored
 * @param b […, n, k], of the dtype of `ld`; batches broadcast
 * @returns X, of the shape of `b` with the broadcast batch
 *
 * @example
 * const { ld, pivots } = linalg.ldlFactor(tensor([[1, 2], [2, 1]]));
 * linalg.ldlSolve(ld, pivots, tensor([[3], [3]])); // float32 [[1], [1]]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if dtypes differ or are not floats, or if
 * the pivots are not int32.
 */
export function ldlSolve<D extends DType>(ld: Tensor<D>, pivots: Tensor<"int32">, b: Tensor<D>): Tensor<D>;
export function ldlSolve(...values: unknown[]): Tensor {
  const { ld, pivots, b } = ldlSolveParameters(values);
  const square = squareOperand("ldlSolve", ld, "ld");
  const right = matrixOperand("ldlSolve", b, "b");
  checkSameDType("ldlSolve", ld, b);
  checkPivots(ld, pivots);
  if (b.shape.at(-2) !== ld.shape.at(-1))
    throw new ShapeError(
      "ldlSolve",
      "shapesDiffer",
      `expected b with ${ld.shape.at(-1)} rows for a ${ld.describe()}, got ${b.describe()}`,
    );
  const [factors, sides] = broadcastBatches("ldlSolve", square, right);
  return toDType(solveBy(factors, expand(pivots, factors.shape.slice(0, -1)), sides), ld.dtype);
}

function checkPivots(ld: Tensor, pivots: Tensor): void {
  if (pivots.dtype !== "int32")
    throw new DTypeError("ldlSolve", "wrongDType", `expected pivots to be int32, got ${pivots.dtype}`);
  const shape = ld.shape.slice(0, -1);
  if (!sameShape(pivots.shape, shape))
    throw new ShapeError(
      "ldlSolve",
      "shapesDiffer",
      `expected pivots of shape ${formatShape(shape)} for a ${ld.describe()}, got ${pivots.describe()}`,
    );
}

/** A is symmetric, so the gradient of B is the solution of A Y = X̄. */
function solveBy(ld: Tensor, pivots: Tensor, b: Tensor): Tensor {
  const x = execute(solvePrimitive, [dense(ld), dense(pivots), dense(b)], b.shape, b.dtype, undefined, "ldlSolve");
  record("ldlSolve", [b], [x], [ld, pivots], ([gradient], [savedLd, swaps]) => [solveBy(savedLd, swaps, gradient)]);
  return x;
}
