/** Shared code of this folder: the compact form of reflections (V and T), and gradients. */
import { lastElement } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import { eye } from "../../ops/creation/eye.ts";
import { add, mul, neg } from "../../ops/elementwise/arithmetic.ts";
import { tril, triu } from "../../ops/indexing/triangle.ts";
import { cat } from "../../ops/join/cat.ts";
import { pad } from "../../ops/join/pad.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { diagonal } from "../../ops/view/diagonal.ts";
import { narrow } from "../../ops/view/slice.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mH, mT } from "../matrices.ts";
import { solveTriangular } from "../triangular/triangular.ts";

/** Returns the first or last columns or rows of matrices, as views. */
export const firstColumns = (x: Tensor, count: number): Tensor => narrow(x, -1, 0, count);
export const firstRows = (x: Tensor, count: number): Tensor => narrow(x, -2, 0, count);
export const lastColumns = (x: Tensor, from: number): Tensor => narrow(x, -1, from, lastElement(x.shape) - from);
export const lastRows = (x: Tensor, from: number): Tensor => narrow(x, -2, from, x.shape.at(-2)! - from);

/** Pads columns or rows with zeros, up to `count` of them. */
export const padColumns = (x: Tensor, count: number): Tensor => pad(x, [0, count - lastElement(x.shape)]);
export const padRows = (x: Tensor, count: number): Tensor => pad(x, [0, 0, 0, count - x.shape.at(-2)!]);

/** Returns a matrix with ones on the diagonal, of the size and dtype of another. */
export const unitLike = (x: Tensor): Tensor => eye(x.shape.at(-2)!, lastElement(x.shape), { dtype: x.dtype });

/** Returns the vectors of reflections as columns: the lower triangle with ones on the diagonal. */
export const vectorsOf = (a: Tensor, count: number): Tensor => {
  const columns = firstColumns(a, count);
  return add(tril(columns, { diagonal: -1 }), unitLike(columns));
};

/**
 * The compact form of reflections: H[0] H[1] … = I − V T Vᵀ with T = (I + D S)⁻¹ D, where D = diag(tau) and S is the
 * strict upper triangle of Vᵀ V. Source: C. Puglisi, "Modification of the Householder method based on the compact WY
 * representation", 1992, eq. 2.
 */
export interface CompactForm {
  readonly v: Tensor;
  readonly t: Tensor;
  readonly s: Tensor;
  /** D S; read as a unit triangular matrix, it is I + D S. */
  readonly ds: Tensor;
  readonly tau: Tensor;
}

export function compactForm(a: Tensor, tau: Tensor): CompactForm {
  const v = vectorsOf(a, lastElement(tau.shape));
  const s = triu(matmul(mT(v), v), { diagonal: 1 });
  const scale = unsqueeze(tau, -1);
  const ds = mul(scale, s);
  const t = solveTriangular(ds, mul(scale, unitLike(s)), { upper: true, unitriangular: true });
  return { v, t, s, ds, tau };
}

/**
 * Computes the gradients of `a` and tau from those of V and T. With X = (I + D S)⁻ᵀ T̄ and M̄ = −X Tᵀ, the gradient of
 * tau is diag(X + M̄ Sᵀ), and V (S̄ + S̄ᵀ) is added to that of V, where S̄ is the strict upper triangle of D M̄.
 *
 * @param columns the number of columns of `a`
 */
export function reflectionGradients(
  { v, t, s, ds, tau }: CompactForm,
  ofV: Tensor,
  ofT: Tensor,
  columns: number,
): [a: Tensor, tau: Tensor] {
  const x = solveTriangular(mT(ds), ofT, { upper: false, unitriangular: true });
  const ofM = triu(neg(matmul(x, mT(t))), { diagonal: 1 });
  const ofTau = add(diagonal(x, { dim1: -2, dim2: -1 }), sum(mul(ofM, s), -1));
  const ofS = mul(unsqueeze(tau, -1), ofM);
  const all = add(ofV, matmul(v, add(ofS, mT(ofS))));
  return [padColumns(tril(all, { diagonal: -1 }), columns), ofTau];
}

/**
 * Computes the gradient of A = Q R, where Q has min(m, n) columns. For at least as many rows as columns it is
 * (Q̄ + Q sym(R R̄ᴴ − Q̄ᴴ Q)) R⁻ᴴ, where sym copies the conjugate of the lower triangle onto the upper one. For
 * A = [X Y] with X square and R = [U W], Y adds Y W̄ᴴ = Q W W̄ᴴ to Q̄, and the gradient of Y is Q W̄. Sources: S.
 * Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2010, 4.5; D. Roberts and L.
 * Roberts, "QR and LQ decomposition matrix backpropagation algorithms", 2020, 4.
 */
export function qrGradient(q: Tensor, r: Tensor, ofQ: Tensor | null, ofR: Tensor | null): Tensor {
  const [rows, columns] = tupleOf(r.shape.slice(-2), 2);
  if (rows >= columns) return tallGradient(q, r, ofQ, ofR);
  const w = lastColumns(r, rows);
  const ofW = ofR && lastColumns(ofR, rows);
  const outer = ofW && matmul(q, matmul(w, mH(ofW)));
  const gradient = tallGradient(q, firstColumns(r, rows), plus(ofQ, outer), ofR && firstColumns(ofR, rows));
  return ofW ? cat([gradient, matmul(q, ofW)], -1) : padColumns(gradient, columns);
}

function tallGradient(q: Tensor, r: Tensor, ofQ: Tensor | null, ofR: Tensor | null): Tensor {
  const product = ofR && matmul(r, mH(ofR));
  const inner = plus(product, ofQ && neg(matmul(mH(ofQ), q)))!;
  const lower = tril(inner);
  const whole = add(lower, mH(tril(lower, { diagonal: -1 })));
  // The diagonal of R is real, so the diagonal of the sum is too.
  const symmetric = isComplex(whole.dtype) ? mul(add(whole, mH(whole)), 0.5) : whole;
  const all = plus(matmul(q, symmetric), ofQ)!;
  return solveTriangular(mH(r), all, { upper: false, left: false });
}

const plus = (a: Tensor | null, b: Tensor | null): Tensor | null => (a && b ? add(a, b) : (a ?? b));
