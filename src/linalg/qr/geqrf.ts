import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { zerosLike } from "../../ops/creation/full.ts";
import { add, mul, neg, sub } from "../../ops/elementwise/arithmetic.ts";
import { tril, triu } from "../../ops/indexing/triangle.ts";
import { cat } from "../../ops/join/cat.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { dense, matrixOperand, mT } from "../matrices.ts";
import { solveTriangular } from "../triangular/triangular.ts";
import { geqrfCpu } from "./geqrf.cpu.ts";
import { geqrfMetal } from "./geqrf.metal.ts";
import { geqrfReference } from "./geqrf.reference.ts";
import { product } from "./householder_product.ts";
import { firstColumns, firstRows, lastRows, padColumns, qrGradient, unitLike, vectorsOf } from "./reflections.ts";

const geqrfPrimitive = definePrimitive<undefined>({
  name: "geqrf",
  family: "linalg",
  implementations: { metal: geqrfMetal, cpu: geqrfCpu, reference: geqrfReference },
});

/** R and the reflections H[i] = I − tau[i] v vᵀ, whose product is Q = H[0] H[1] …. */
export interface GeqrfResult<D extends DType = DType> {
  /** R in the upper triangle; v of each reflection below the diagonal, without its 1 on the diagonal. */
  readonly a: Tensor<D>;
  /** […, min(m, n)] */
  readonly tau: Tensor<D>;
}

/**
 * Computes the QR factorization of matrices as LAPACK's `geqrf` does. Q is a product of reflections, which
 * `householderProduct` converts to a matrix and `ormqr` multiplies by. The diagonal of R may have any signs.
 *
 * The gradient is undefined (infinite or NaN) if the first min(m, n) columns are linearly dependent.
 *
 * @param a […, m, n], of a float dtype; float16 and bfloat16 are computed in float32
 * @returns `a` of the shape of the operand, and `tau`
 *
 * @example
 * linalg.geqrf(tensor([[3], [4]])); // { a: float32 [[-5], [0.5]], tau: float32 [1.6] }
 *
 * @throws {ShapeError} for a tensor with fewer than two axes. @throws {DTypeError} if the dtype is not a float.
 */
export function geqrf<D extends DType>(a: Tensor<D>): GeqrfResult<D>;
export function geqrf(...values: unknown[]): GeqrfResult {
  const { a } = geqrfParameters(values);
  const result = reflections("geqrf", matrixOperand("geqrf", a));
  return { a: toDType(result.a, a.dtype), tau: toDType(result.tau, a.dtype) };
}
const geqrfParameters = parameters("geqrf", { a: operand(aTensor) });

/** Factorizes float32 or float64 matrices into R and reflections. */
function reflections(operation: string, a: Tensor): GeqrfResult {
  const [rows, columns] = tupleOf(a.shape.slice(-2), 2);
  const { dtype } = a;
  const [factors, tau] = executeMany(
    geqrfPrimitive,
    [dense(a)],
    [
      { shape: a.shape, dtype },
      { shape: [...a.shape.slice(0, -2), Math.min(rows, columns)], dtype },
    ],
    undefined,
    operation,
  );
  record(operation, [a], [factors, tau], [factors, tau], ([ofFactors, ofTau], [savedFactors, savedTau]) => [
    gradient({ a: savedFactors, tau: savedTau }, ofFactors ?? null, ofTau ?? null),
  ]);
  return { a: factors, tau };
}

/**
 * The gradient through Q and R. V and tau are functions of Q: Q minus the unit matrix is V U, where U = −T V₁ᵀ is upper
 * triangular with diagonal −tau, and V₁ is the first rows of V. So they have the gradient of an LU factorization
 * without row swaps: V₁⁻ᵀ (tril(V₁ᵀ V̄₁, −1) + triu(Ū Uᵀ − V₂ᵀ V̄₂)) U⁻ᵀ, and below it V̄₂ U⁻ᵀ. A matrix with as many
 * columns as rows has one reflection fewer: the last tau is 0. Source of the factorization V U: G. Ballard et al.,
 * "Reconstructing Householder vectors from tall-skinny QR", 2014, 3.
 */
function gradient({ a, tau }: GeqrfResult, ofA: Tensor | null, ofTau: Tensor | null): Tensor {
  const [rows, columns] = tupleOf(a.shape.slice(-2), 2);
  const count = Math.min(rows, columns);
  const q = product("geqrf", firstColumns(a, count), tau);
  const r = triu(firstRows(a, count));
  const ofR = ofA && triu(firstRows(ofA, count));
  const moved = Math.min(rows - 1, columns);
  if (moved === 0 && !ofR) return zerosLike(a); // only tau has a gradient, and tau is always 0
  const ofQ = moved > 0 ? padColumns(gradientOfQ(q, a, moved, ofA, ofTau), count) : null;
  return qrGradient(q, r, ofQ, ofR);
}

function gradientOfQ(q: Tensor, a: Tensor, moved: number, ofA: Tensor | null, ofTau: Tensor | null): Tensor {
  const movedColumns = firstColumns(q, moved);
  const vectors = vectorsOf(a, moved);
  const [top, bottom] = [firstRows(vectors, moved), lastRows(vectors, moved)];
  const difference = firstRows(sub(movedColumns, unitLike(movedColumns)), moved);
  const u = solveTriangular(top, difference, { upper: false, unitriangular: true });
  const ofV = tril(firstColumns(ofA ?? zerosLike(a), moved), { diagonal: -1 });
  const [ofTop, ofBottom] = [firstRows(ofV, moved), lastRows(ofV, moved)];
  const lower = tril(matmul(mT(top), ofTop), { diagonal: -1 });
  const ofU = ofTau && neg(mul(unsqueeze(firstColumns(ofTau, moved), -1), mT(u)));
  const fromBelow = neg(matmul(mT(bottom), ofBottom));
  const inner = add(lower, triu(ofU ? add(ofU, fromBelow) : fromBelow));
  const left = solveTriangular(mT(top), inner, { upper: true, unitriangular: true });
  return solveTriangular(mT(u), cat([left, ofBottom], -2), { upper: false, left: false });
}
