import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add, mul } from "../../ops/elementwise/arithmetic.ts";
import { tril } from "../../ops/indexing/triangle.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkInfo } from "../info.ts";
import { denseOrTransposed, mH, squareOperand, stridesLike } from "../matrices.ts";
import { solveTriangular } from "../triangular/triangular.ts";
import { choleskyCpu } from "./cholesky.cpu.ts";
import { choleskyMetal } from "./cholesky.metal.ts";
import { choleskyReference } from "./cholesky.reference.ts";

const choleskyPrimitive = definePrimitive<undefined>({
  name: "cholesky",
  family: "linalg",
  implementations: { metal: choleskyMetal, cpu: choleskyCpu, reference: choleskyReference },
});

/** Options of {@link cholesky}. */
export interface CholeskyOptions {
  /** Uses the upper factor U of A = Uᵀ U, and reads the upper triangle. Default false. */
  upper?: boolean;
}

const declared = { a: operand(aTensor), upper: named(flag, false) } as const;
const choleskyParameters = parameters("cholesky", declared);
const choleskyExParameters = parameters("choleskyEx", declared);

/** A Cholesky factor, with the first leading minor of each matrix that is not positive definite. */
export interface CholeskyResult<D extends DType = DType> {
  readonly factor: Tensor<D>;
  /** int32, of the shape of the batch: the order of the first leading minor that is not positive definite, or 0. */
  readonly info: Tensor<"int32">;
}

/**
 * Computes the Cholesky factor of symmetric or Hermitian positive definite matrices: A = L Lᴴ, where L is lower
 * triangular with a positive diagonal. Only the lower triangle of A is read.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, n, n], of the dtype of `a`
 *
 * @example
 * linalg.cholesky(tensor([[4, 2], [2, 5]])); // float32 [[2, 0], [1, 2]]
 *
 * @throws {LinAlgError} for a matrix that is not positive definite, naming it and the minor; on metal only once the
 * host reads a tensor that depends on the factor. {@link choleskyEx} returns `info` instead. @throws {ShapeError} for a
 * matrix that is not square. @throws {DTypeError} if the dtype is not a float.
 */
export function cholesky<D extends DType>(a: Tensor<D>, options?: CholeskyOptions): Tensor<D>;
export function cholesky(...values: unknown[]): Tensor {
  const { a, upper } = choleskyParameters(values);
  const { factor, info } = factorize("cholesky", a, upper);
  checkInfo("cholesky", info, notDefinite, [factor]);
  return factor;
}

/**
 * Computes the Cholesky factor as {@link cholesky} does, but returns `info` instead of throwing an error. For a matrix
 * that is not positive definite, the factor has the rows before the failing minor, and is 0 from there on.
 *
 * @param a […, n, n]
 * @returns L or U […, n, n], info int32 […]
 *
 * @example
 * linalg.choleskyEx(tensor([[1, 2], [2, 1]])).info.item(); // 2
 */
export function choleskyEx<D extends DType>(a: Tensor<D>, options?: CholeskyOptions): CholeskyResult<D>;
export function choleskyEx(...values: unknown[]): CholeskyResult {
  const { a, upper } = choleskyExParameters(values);
  return factorize("choleskyEx", a, upper);
}

const notDefinite = (minor: number): string => `is not positive definite: its leading minor of order ${minor} is not`;

function factorize(operation: string, a: Tensor, upper: boolean): CholeskyResult {
  const matrix = squareOperand(operation, a);
  const { factor, info } = lowerFactor(operation, upper ? mH(matrix) : matrix);
  return { factor: toDType(upper ? mH(factor) : factor, a.dtype), info };
}

/**
 * Returns a Hermitian matrix with the imaginary parts of its diagonal, which are rounding errors, set to 0. Real
 * matrices are returned unchanged.
 */
const hermitianPart = (x: Tensor): Tensor => (isComplex(x.dtype) ? mul(add(x, mH(x)), 0.5) : x);

/**
 * Computes the lower factor of float32, float64 or complex matrices.
 *
 * With Φ(X) the lower triangle of X with its diagonal halved, the gradient is L⁻ᴴ sym(Φ(Lᴴ L̄)) L⁻¹, where sym adds the
 * conjugate transpose and halves. Source: I. Murray, "Differentiation of the Cholesky decomposition", 2016, eq. 10.
 */
function lowerFactor(operation: string, a: Tensor): CholeskyResult {
  const dense = denseOrTransposed(a);
  const [factor, info] = executeMany(
    choleskyPrimitive,
    [dense],
    [
      { shape: a.shape, dtype: a.dtype, strides: stridesLike(dense) },
      { shape: a.shape.slice(0, -2), dtype: "int32" },
    ],
    undefined,
    operation,
  );
  record(
    operation,
    [a],
    [factor],
    [factor],
    ([gradient], [l]) => {
      const inner = tril(matmul(mH(l), gradient));
      const symmetric = mul(add(inner, mH(tril(inner, { diagonal: -1 }))), 0.5);
      const left = solveTriangular(mH(l), hermitianPart(symmetric), { upper: true });
      return [solveTriangular(l, left, { upper: false, left: false })];
    },
    "none",
  );
  return { factor, info };
}
