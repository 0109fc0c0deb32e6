import { needsGradient, record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { conjugate } from "../../ops/complex/part.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add, neg } from "../../ops/elementwise/arithmetic.ts";
import { tril, triu } from "../../ops/indexing/triangle.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { expand } from "../../ops/view/expand.ts";
import { squeeze, unsqueeze } from "../../ops/view/squeeze.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import { broadcastBatches, checkSameDType, dense, matrixOperand, mT, squareOperand } from "../matrices.ts";
import { permuteRows, unitLower } from "./factor.ts";
import { luSolveCpu, solveCpu } from "./lu.cpu.ts";
import { luSolveMetal, solveMetal } from "./lu.metal.ts";
import { luSolveReference, solveReference } from "./lu.reference.ts";
import type { LuSolveAttributes } from "./primitive.ts";

const solvePrimitive = definePrimitive<undefined>({
  name: "solve",
  family: "linalg",
  implementations: { metal: solveMetal, cpu: solveCpu, reference: solveReference },
});

const luSolvePrimitive = definePrimitive<LuSolveAttributes>({
  name: "luSolve",
  family: "linalg",
  implementations: { metal: luSolveMetal, cpu: luSolveCpu, reference: luSolveReference },
});

/** Options of {@link solve}. */
export interface SolveOptions {
  /** Solves A X = B if true, X A = B if false. Default true. */
  left?: boolean;
}

/** A solution, with the first zero pivot of each matrix. */
export interface SolveResult<D extends DType = DType> {
  readonly result: Tensor<D>;
  /** int32, of the shape of the batch: the first zero pivot of each matrix, counted from 1; 0 if there is none. */
  readonly info: Tensor<"int32">;
}

/** Options of {@link luSolve}. */
export interface LuSolveOptions {
  /** Solves A X = B if true, X A = B if false. Default true. */
  left?: boolean;
  /** Uses Aᵀ instead of A, or Aᴴ if it is complex. Default false. */
  adjoint?: boolean;
}

const declared = { a: operand(aTensor), b: operand(aTensor), left: named(flag, true) } as const;
const solveParameters = parameters("solve", declared);
const solveExParameters = parameters("solveEx", declared);
const luSolveParameters = parameters("luSolve", {
  lu: operand(aTensor),
  pivots: operand(aTensor),
  b: operand(aTensor),
  left: named(flag, true),
  adjoint: named(flag, false),
});

/**
 * Solves A X = B, or X A = B, by LU factorization with partial pivoting.
 *
 * As in PyTorch, `b` is a vector or a batch of vectors if it has one axis, or if it has the shape of `a` without its
 * last axis. Otherwise it is a matrix or a batch of matrices.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @param b […, n, k], or […, k, n] if `left` is false, or vectors […, n]; of the dtype of `a`. Batches broadcast
 * @returns X, of the shape of `b` with the broadcast batch
 *
 * @example
 * linalg.solve(tensor([[2, 1], [1, 3]]), tensor([3, 5])); // float32 [0.8, 1.4]
 *
 * @throws {LinAlgError} for a singular matrix, naming it and its zero pivot; {@link solveEx} returns `info` instead.
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if dtypes differ or are not floats.
 */
export function solve<D extends DType>(a: Tensor<D>, b: Tensor<D>, options?: SolveOptions): Tensor<D>;
export function solve(...values: unknown[]): Tensor {
  const { a, b, left } = solveParameters(values);
  return solveSides("solve", a, b, left, (info, x) => checkInfo("solve", info, singular, [x])).result;
}

/** @internal Returns the message of {@link checkInfo} for a singular matrix. */
export const singular = (pivot: number): string => `is singular: pivot ${pivot} of its LU factorization is 0`;

/**
 * Solves A X = B, or X A = B, as {@link solve} does, but returns `info` instead of throwing an error. The solution is
 * infinity or NaN for a singular matrix.
 *
 * @param a […, n, n]
 * @param b […, n, k], or [n]
 * @returns result of the shape of b, info int32 […]
 *
 * @example
 * linalg.solveEx(tensor([[1, 2], [2, 4]]), tensor([1, 1])).info.item(); // 2
 */
export function solveEx<D extends DType>(a: Tensor<D>, b: Tensor<D>, options?: SolveOptions): SolveResult<D>;
export function solveEx(...values: unknown[]): SolveResult {
  const { a, b, left } = solveExParameters(values);
  return solveSides("solveEx", a, b, left);
}

/** @param check receives `info` and the solution before they are used */
function solveSides(
  operation: string,
  a: Tensor,
  b: Tensor,
  left: boolean,
  check?: (info: Tensor<"int32">, x: Tensor) => void,
): SolveResult {
  const square = squareOperand(operation, a);
  const isVector = b.rank === 1 || (b.rank === a.rank - 1 && sameShape(b.shape, a.shape.slice(0, -1)));
  const right = matrixOperand(operation, isVector ? unsqueeze(b, -1) : b, "b");
  checkSameDType(operation, a, b);
  if (isVector && !left)
    throw new ShapeError(operation, "wrongRank", `expected b to be a matrix if left is false, got ${b.describe()}`);
  checkInnerSize(operation, a, right, left);
  const operands = left
    ? broadcastBatches(operation, square, right)
    : broadcastBatches(operation, mT(square), mT(right));
  const { result, info } = solveRecorded(operation, ...operands);
  check?.(info, result);
  const solution = left ? result : mT(result);
  return { result: toDType(isVector ? squeeze(solution, { dim: -1 }) : solution, a.dtype), info };
}

function checkInnerSize(operation: string, a: Tensor, b: Tensor, left: boolean): void {
  const size = a.shape.at(-1);
  if (b.shape.at(left ? -2 : -1) === size) return;
  throw new ShapeError(
    operation,
    "shapesDiffer",
    `expected b with ${size} ${left ? "rows" : "columns"} for a ${a.describe()}, got ${b.describe()}`,
  );
}

/** Solves A X = B in float32 or float64, with operands of one batch shape. */
function solveRecorded(operation: string, a: Tensor, b: Tensor): SolveResult {
  const keepsFactor = needsGradient(a, b);
  const batch = a.shape.slice(0, -2);
  const [x, info, lu, pivots] = executeMany(
    solvePrimitive,
    [dense(a), dense(b)],
    [
      { shape: b.shape, dtype: b.dtype },
      { shape: batch, dtype: "int32" },
      ...(keepsFactor
        ? ([
            { shape: a.shape, dtype: a.dtype },
            { shape: a.shape.slice(0, -1), dtype: "int32" },
          ] as const)
        : []),
    ],
    undefined,
    operation,
  );
  if (lu && pivots) recordSolution(operation, a, b, x, { lu, pivots, adjoint: false });
  return { result: x, info };
}

/** @internal Computes A⁻¹ of float32 or float64 matrices, with gradient −A⁻ᵀ X̄ A⁻ᵀ. */
export function invertRecorded(operation: string, a: Tensor): SolveResult {
  const [x, info] = executeMany(
    solvePrimitive,
    [dense(a)],
    [
      { shape: a.shape, dtype: a.dtype },
      { shape: a.shape.slice(0, -2), dtype: "int32" },
    ],
    undefined,
    operation,
  );
  record(operation, [a], [x], [x], ([gradient], [inverse]) => [
    neg(matmul(mT(inverse), matmul(gradient, mT(inverse)))),
  ]);
  return { result: x, info };
}

/** The factors of A, and whether to use Aᵀ. */
interface Factored {
  readonly lu: Tensor;
  readonly pivots: Tensor;
  readonly adjoint: boolean;
}

/**
 * Records the gradients of a solution. The gradient of B is Y = A⁻ᵀ X̄, and the gradient of A is −Y Xᵀ. For Aᵀ X = B, Y
 * is A⁻¹ X̄ and the gradient of A is −X Yᵀ. The factors are kept, so gradients of any order reuse them.
 */
function recordSolution(operation: string, a: Tensor, b: Tensor, x: Tensor, factored: Factored): void {
  const { lu, pivots, adjoint } = factored;
  record(operation, [a, b], [x], [a, x, lu, pivots], ([gradient], [savedA, solution, factors, swaps], needs) => {
    const y = solveFactored(operation, savedA, gradient, { lu: factors, pivots: swaps, adjoint: !adjoint });
    const product = () => neg(adjoint ? matmul(solution, mT(y)) : matmul(y, mT(solution)));
    return [needs[0] ? product() : null, needs[1] ? y : null];
  });
}

/** @internal Solves A X = B from the factors of A. Gradients flow to A, not to its factors. */
export function solveFactored(operation: string, a: Tensor, b: Tensor, factored: Factored): Tensor {
  const x = substitute(operation, b, factored);
  recordSolution(operation, a, b, x, factored);
  return x;
}

function substitute(operation: string, b: Tensor, { lu, pivots, adjoint }: Factored): Tensor {
  return execute(luSolvePrimitive, [dense(lu), dense(pivots), dense(b)], b.shape, b.dtype, { adjoint }, operation);
}

/**
 * Solves A X = B, or X A = B, from the factors that {@link luFactor} returns. A zero pivot gives infinity or NaN.
 *
 * @param lu […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @param pivots int32 […, n], counted from 1; pivots outside the matrix are ignored
 * @param b […, n, k], or […, k, n] if `left` is false, of the dtype of `lu`; batches broadcast
 * @returns X, of the shape of `b` with the broadcast batch
 *
 * @example
 * const { lu, pivots } = linalg.luFactor(tensor([[2, 1], [1, 3]]));
 * linalg.luSolve(lu, pivots, tensor([[3], [5]])); // float32 [[0.8], [1.4]]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if dtypes differ or are not floats, or if
 * the pivots are not int32.
 */
export function luSolve<D extends DType>(
  lu: Tensor<D>,
  pivots: Tensor<"int32">,
  b: Tensor<D>,
  options?: LuSolveOptions,
): Tensor<D>;
export function luSolve(...values: unknown[]): Tensor {
  const operation = "luSolve";
  const { lu, pivots, b, left, adjoint } = luSolveParameters(values);
  const square = squareOperand(operation, lu, "lu");
  const right = matrixOperand(operation, b, "b");
  checkSameDType(operation, lu, b);
  checkPivots(lu, pivots);
  checkInnerSize(operation, lu, b, left);
  const conjugated = adjoint ? conjugate : (x: Tensor) => x; // Aᴴ X = B is Aᵀ conj(X) = conj(B)
  const [factors, sides] = broadcastBatches(operation, square, conjugated(left ? right : mT(right)));
  const swaps = expand(pivots, factors.shape.slice(0, -1));
  const x = conjugated(solveByFactors(factors, swaps as Tensor<"int32">, sides, left ? adjoint : !adjoint));
  return toDType(left ? x : mT(x), lu.dtype);
}

function checkPivots(lu: Tensor, pivots: Tensor): void {
  if (pivots.dtype !== "int32")
    throw new DTypeError("luSolve", "wrongDType", `expected pivots to be int32, got ${pivots.dtype}`);
  const shape = lu.shape.slice(0, -1);
  if (!sameShape(pivots.shape, shape))
    throw new ShapeError(
      "luSolve",
      "shapesDiffer",
      `expected pivots of shape ${formatShape(shape)} for a ${lu.describe()}, got ${pivots.describe()}`,
    );
}

/**
 * With G the gradient of A = P L U from {@link recordSolution}, the gradient of L is tril(Pᵀ G Uᵀ, −1), and the
 * gradient of U is triu(Lᵀ Pᵀ G).
 */
function solveByFactors(lu: Tensor, pivots: Tensor<"int32">, b: Tensor, adjoint: boolean): Tensor {
  const x = substitute("luSolve", b, { lu, pivots, adjoint });
  record("luSolve", [lu, b], [x], [lu, pivots, x], ([gradient], [factors, swaps, solution], needs) => {
    const order = swaps;
    const y = solveByFactors(factors, order, gradient, !adjoint);
    if (!needs[0]) return [null, y];
    const whole = neg(adjoint ? matmul(solution, mT(y)) : matmul(y, mT(solution)));
    const permuted = permuteRows(whole, order, false);
    const lower = tril(matmul(permuted, mT(triu(factors))), { diagonal: -1 });
    return [add(lower, triu(matmul(mT(unitLower(factors)), permuted))), needs[1] ? y : null];
  });
  return x;
}
