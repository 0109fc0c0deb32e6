import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { lastElement } from "../../core/collections.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { zeros } from "../../ops/creation/full.ts";
import { add, mul, neg, reciprocal, sub } from "../../ops/elementwise/arithmetic.ts";
import { where } from "../../ops/elementwise/where.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { eigh } from "../eigh/eigh.ts";
import { matrixOperand, mH, squareOperand } from "../matrices.ts";
import { areSignificant, type RankOptions, rankParameters } from "./rank_tolerance.ts";
import { factorize } from "./svd.ts";

const pinvParameters = parameters("pinv", { a: operand(aTensor), ...rankParameters });

/**
 * Computes the Moore-Penrose pseudoinverse of matrices: V Σ⁺ Uᵀ, where Σ⁺ has the reciprocals of the singular values
 * above max(atol, rtol · the largest one), and 0 for the others. The gradient is correct if small changes of A do not
 * change its rank.
 *
 * @param a […, m, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @returns […, n, m], of the dtype of `a`
 *
 * @example
 * linalg.pinv(tensor([[2, 0], [0, 0]])); // float32 [[0.5, 0], [0, 0]]
 *
 * @throws {LinAlgError} for a matrix with elements that are infinite or NaN, naming it. @throws {ShapeError} for a
 * tensor with fewer than two axes, and a `hermitian` matrix that is not square. @throws {DTypeError} if the dtype is
 * not a float.
 */
export function pinv<D extends DType>(a: Tensor<D>, options?: RankOptions): Tensor<D>;
export function pinv(...values: unknown[]): Tensor {
  const { a, ...options } = pinvParameters(values);
  const matrix = (options.hermitian ? squareOperand : matrixOperand)("pinv", a);
  return tidy(() => toDType(recorded(matrix, options), a.dtype));
}

function recorded(a: Tensor, options: RankOptions): Tensor {
  const result = noGrad(() => pseudoinverse(a, options));
  record(
    "pinv",
    [a],
    [result],
    [a, result],
    ([gradient], [savedA, inverse]) => [gradientOf(mH(gradient), savedA, inverse)],
    "none",
  );
  return result;
}

function pseudoinverse(a: Tensor, options: RankOptions): Tensor {
  const [rows, columns] = tupleOf(a.shape.slice(-2), 2);
  if (rows === 0 || columns === 0) return zeros([...a.shape.slice(0, -2), columns, rows], { dtype: a.dtype });
  const invert = (values: Tensor): Tensor =>
    unsqueeze(where(areSignificant(values, a, options), reciprocal(values), 0), -2);
  if (options.hermitian) {
    const { eigenvalues, eigenvectors } = eigh(a);
    return matmul(mul(eigenvectors, invert(eigenvalues)), mH(eigenvectors));
  }
  const { u, s, vh } = factorize("pinv", a, false);
  return matmul(mul(mH(vh), invert(s)), mH(u));
}

/**
 * With G the conjugate transpose of the gradient, P = A⁺ and K = G P, the gradient of a wide A is
 *
 *   −(P K)ᴴ + K Pᴴ − A P K Pᴴ + Pᴴ P (G − K A),
 *
 * and the same in another order if A is tall, so that all products are of the smaller size. Source: G. Golub, V.
 * Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate",
 * 1973.
 */
function gradientOf(g: Tensor, a: Tensor, p: Tensor): Tensor {
  const pt = mH(p);
  if (a.shape.at(-2)! <= lastElement(a.shape)) {
    const k = matmul(g, p);
    const kpt = matmul(k, pt);
    const inside = sub(kpt, matmul(matmul(a, p), kpt));
    return add(sub(inside, mH(matmul(p, k))), matmul(matmul(pt, p), sub(g, matmul(k, a))));
  }
  const k = matmul(p, g);
  const ptk = matmul(pt, k);
  const outside = matmul(matmul(sub(g, matmul(a, k)), p), pt);
  return add(add(outside, neg(mH(matmul(k, p)))), sub(ptk, matmul(matmul(ptk, p), a)));
}
