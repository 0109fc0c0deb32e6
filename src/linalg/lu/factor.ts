import { record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { arange } from "../../ops/creation/arange.ts";
import { eye } from "../../ops/creation/eye.ts";
import { zeros } from "../../ops/creation/full.ts";
import { add, sub } from "../../ops/elementwise/arithmetic.ts";
import { eq } from "../../ops/elementwise/comparison.ts";
import { takeAlongDim } from "../../ops/indexing/gather.ts";
import { tril, triu } from "../../ops/indexing/triangle.ts";
import { cat } from "../../ops/join/cat.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { narrow } from "../../ops/view/slice.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import { dense, matrixOperand, mT } from "../matrices.ts";
import { solveTriangular } from "../triangular/triangular.ts";
import { luFactorCpu, luPermutationCpu } from "./lu.cpu.ts";
import { luFactorMetal, luPermutationMetal } from "./lu.metal.ts";
import { luFactorReference, luPermutationReference } from "./lu.reference.ts";
import type { LuFactorAttributes, LuPermutationAttributes } from "./primitive.ts";
import { partsOf } from "./results.cpu.ts";

const factorPrimitive = definePrimitive<LuFactorAttributes>({
  name: "luFactor",
  family: "linalg",
  implementations: { metal: luFactorMetal, cpu: luFactorCpu, reference: luFactorReference },
});

const permutationPrimitive = definePrimitive<LuPermutationAttributes>({
  name: "luPermutation",
  family: "linalg",
  implementations: { metal: luPermutationMetal, cpu: luPermutationCpu, reference: luPermutationReference },
});

/** Options of {@link lu} and {@link luFactor}. */
export interface LuOptions {
  /** Swaps rows so that no element of L exceeds 1. If false, a zero pivot gives infinity. Default true. */
  pivot?: boolean;
}

const declared = { a: operand(aTensor), pivot: named(flag, true) } as const;
const luParameters = parameters("lu", declared);
const luFactorParameters = parameters("luFactor", declared);
const luFactorExParameters = parameters("luFactorEx", declared);

/** The factors of A = P L U. */
export interface Lu<D extends DType = DType> {
  /** […, m, m]: the permutation P; of shape [0] if `pivot` is false. */
  readonly p: Tensor<D>;
  /** […, m, k], k the smaller of m and n: lower triangular with a diagonal of 1. */
  readonly l: Tensor<D>;
  /** […, k, n]: upper triangular. */
  readonly u: Tensor<D>;
}

/** The factors of A = P L U, with L and U in one matrix. */
export interface LuFactors<D extends DType = DType> {
  /** […, m, n]: L below the diagonal, without its diagonal of 1; U on and above it. */
  readonly lu: Tensor<D>;
  /** int32 […, k], k the smaller of m and n: step i swapped row i with row pivots[i], counted from 1. */
  readonly pivots: Tensor<"int32">;
}

/** {@link LuFactors}, with the first zero pivot of each matrix. */
export interface LuFactorsInfo<D extends DType = DType> extends LuFactors<D> {
  /** int32, of the shape of the batch: the first zero pivot of each matrix, counted from 1; 0 if there is none. */
  readonly info: Tensor<"int32">;
}

/**
 * Computes the LU factorization A = P L U with partial pivoting. A singular matrix has one too, with a 0 on the
 * diagonal of U.
 *
 * The pivot of a column is its element of largest absolute value, the first on ties. NaN is skipped unless it is the
 * first element.
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 *
 * @example
 * const { p, l, u } = linalg.lu(tensor([[1, 2], [2, 2]]));
 * // p [[0, 1], [1, 0]], l [[1, 0], [0.5, 1]], u [[2, 2], [0, 1]]
 *
 * @throws {ShapeError} for a tensor with fewer than two axes. @throws {DTypeError} if the dtype is not a float.
 */
export function lu<D extends DType>(a: Tensor<D>, options?: LuOptions): Lu<D>;
export function lu(...values: unknown[]): Lu {
  const { a, pivot } = luParameters(values);
  const factors = factorize("lu", matrixOperand("lu", a), pivot);
  factors.info.dispose();
  if (!isComplex(a.dtype) && fusesOnCpu(factors.lu)) return partsInDType(factors, pivot, a.dtype);
  const [rows, columns] = tupleOf(factors.lu.shape.slice(-2), 2);
  const size = Math.min(rows, columns);
  const p = pivot ? permutationMatrix(factors.pivots, rows, a.dtype) : zeros([0], { dtype: a.dtype });
  factors.pivots.dispose();
  return {
    p,
    l: toDType(unitLower(narrow(factors.lu, -1, 0, size)), a.dtype),
    u: toDType(triu(narrow(factors.lu, -2, 0, size)), a.dtype),
  };
}

function partsInDType(factors: LuFactors, pivot: boolean, dtype: DType): Lu {
  const { p, l, u } = partsOf(factors.lu, factors.pivots, pivot);
  factors.lu.dispose();
  factors.pivots.dispose();
  return { p: toDType(p, dtype), l: toDType(l, dtype), u: toDType(u, dtype) };
}

/**
 * Computes the LU factorization A = P L U, as {@link lu} does, in the form that {@link luSolve} accepts.
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 *
 * @example
 * linalg.luFactor(tensor([[1, 2], [2, 2]])); // { lu: [[2, 2], [0.5, 1]], pivots: [2, 2] }
 *
 * @throws {LinAlgError} for a matrix with a zero pivot, naming both; {@link luFactorEx} returns `info` instead.
 * @throws {ShapeError} for a tensor with fewer than two axes. @throws {DTypeError} if the dtype is not a float.
 */
export function luFactor<D extends DType>(a: Tensor<D>, options?: LuOptions): LuFactors<D>;
export function luFactor(...values: unknown[]): LuFactors {
  const { a, pivot } = luFactorParameters(values);
  const { lu, pivots, info } = factorize("luFactor", matrixOperand("luFactor", a), pivot);
  const problem = (at: number) => `has a pivot of 0 in column ${at}, so its factors can't solve a system`;
  checkInfo("luFactor", info, problem, [lu, pivots]);
  return { lu: toDType(lu, a.dtype), pivots };
}

/**
 * Computes the LU factorization as {@link luFactor} does, but returns `info` instead of throwing an error.
 *
 * @param a […, m, n]
 * @returns LU […, m, n], pivots int32 […, min(m, n)], info int32 […]
 *
 * @example
 * linalg.luFactorEx(tensor([[1, 2], [2, 4]])).info.item(); // 2
 */
export function luFactorEx<D extends DType>(a: Tensor<D>, options?: LuOptions): LuFactorsInfo<D>;
export function luFactorEx(...values: unknown[]): LuFactorsInfo {
  const { a, pivot } = luFactorExParameters(values);
  const { lu, pivots, info } = factorize("luFactorEx", matrixOperand("luFactorEx", a), pivot);
  return { lu: toDType(lu, a.dtype), pivots, info };
}

/** @internal Factorizes float32 or float64 matrices, and records the gradient. */
export function factorize(operation: string, a: Tensor, pivot: boolean): LuFactorsInfo {
  const size = Math.min(...a.shape.slice(-2));
  const batch = a.shape.slice(0, -2);
  const [lu, pivots, info] = executeMany(
    factorPrimitive,
    [dense(a)],
    [
      { shape: a.shape, dtype: a.dtype },
      { shape: [...batch, size], dtype: "int32" },
      { shape: batch, dtype: "int32" },
    ],
    { pivot },
    operation,
  );
  record(operation, [a], [lu], [lu, pivots], ([gradient], [savedLu, swaps]) => [gradientOf(savedLu, swaps, gradient)]);
  return { lu, pivots, info };
}

/**
 * With A = P L U and S = tril(Lᵀ L̄, −1) + triu(Ū Uᵀ), the gradient of a square A is P L⁻ᵀ S U⁻ᵀ. If A has more columns
 * than rows, U = [U₁ U₂], Ū₂ U₂ᵀ is subtracted from Lᵀ L̄, and P L⁻ᵀ Ū₂ is the gradient of the other columns. If it has
 * more rows, L = [L₁; L₂], L₂ᵀ L̄₂ is subtracted from Ū Uᵀ, and P L̄₂ U⁻ᵀ is the gradient of the other rows.
 *
 * Source: S. F. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in
 * optimum experimental design", 2010; for other shapes as in `linalg_lu_backward` of PyTorch.
 */
function gradientOf(lu: Tensor, pivots: Tensor<"int32">, gradient: Tensor): Tensor {
  const [rows, columns] = tupleOf(lu.shape.slice(-2), 2);
  const size = Math.min(rows, columns);
  const square = (x: Tensor): Tensor => narrow(narrow(x, -2, 0, size), -1, 0, size);
  const right = (x: Tensor): Tensor => narrow(x, -1, size, columns - size);
  const below = (x: Tensor): Tensor => narrow(x, -2, size, rows - size);
  const [factors, change] = [square(lu), square(gradient)];
  const [l, u] = [unitLower(factors), triu(factors)];
  const divideByU = (x: Tensor): Tensor => solveTriangular(mT(u), x, { upper: false, left: false });
  const divideByL = (x: Tensor): Tensor => solveTriangular(mT(l), x, { upper: true, unitriangular: true });
  let lower = matmul(mT(l), tril(change, { diagonal: -1 }));
  let upper = matmul(triu(change), mT(u));
  if (columns > rows) lower = sub(lower, matmul(right(gradient), mT(right(lu))));
  if (rows > columns) upper = sub(upper, matmul(mT(below(lu)), below(gradient)));
  const inner = divideByU(add(tril(lower, { diagonal: -1 }), triu(upper)));
  let permuted = divideByL(columns > rows ? cat([inner, right(gradient)], { dim: -1 }) : inner);
  if (rows > columns) permuted = cat([permuted, divideByU(below(gradient))], { dim: -2 });
  return permuteRows(permuted, pivots, true);
}

/** @internal Returns the lower triangle with a diagonal of 1. */
export function unitLower(x: Tensor): Tensor {
  const [rows, columns] = tupleOf(x.shape.slice(-2), 2);
  return add(tril(x, { diagonal: -1 }), eye(rows, columns, { dtype: x.dtype }));
}

/** @internal Computes P X if `inverse`, else Pᵀ X. */
export function permuteRows(x: Tensor, pivots: Tensor<"int32">, inverse: boolean): Tensor {
  const order = permutation(pivots, x.shape.at(-2)!, inverse);
  return takeAlongDim(x, unsqueeze(order, -1), { dim: -2 });
}

function permutation(pivots: Tensor<"int32">, rows: number, inverse: boolean): Tensor<"int32"> {
  const shape = [...pivots.shape.slice(0, -1), rows];
  const row = unsqueeze(pivots, -2); // the primitive expects matrices, so each vector becomes a matrix with one row
  return execute(permutationPrimitive, [dense(row)], shape, "int32", { inverse }, "lu");
}

function permutationMatrix(pivots: Tensor<"int32">, rows: number, dtype: DType): Tensor {
  const order = permutation(pivots, rows, true);
  return toDType(eq(unsqueeze(order, -1), arange(0, rows, { dtype: "int32" })), dtype);
}
