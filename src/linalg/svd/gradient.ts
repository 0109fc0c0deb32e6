import { lastElement } from "../../core/collections.ts";
import { eye } from "../../ops/creation/eye.ts";
import { add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { div } from "../../ops/elementwise/division.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkPhases, diagonalPart } from "../complex/phases.ts";
import { mH } from "../matrices.ts";

/** U, the singular values and Vᵀ, with one vector per singular value; or their gradients. */
export interface Factors<T = Tensor> {
  readonly u: T;
  readonly s: T;
  readonly vh: T;
}

/**
 * Computes the gradient of A = U Σ Vᴴ. With skew(X) = X − Xᴴ and E[i, j] = σ[j]² − σ[i]², 1 on the diagonal, it is
 *
 *   U ((skew(Uᴴ Ū) / E) Σ + Σ (skew(Vᴴ V̄) / E) + diag(σ̄)) Vᴴ + (I − U Uᴴ) Ū Σ⁻¹ Vᴴ + U Σ⁻¹ V̄ᴴ (I − V Vᴴ).
 *
 * Source: J. Townsend, "Differentiating the singular value decomposition", 2016.
 */
export function svdGradient(
  operation: string,
  { u, s, vh }: Factors,
  gradients: Factors<Tensor | null>,
): Tensor | null {
  const ofValues = gradients.s && matmul(mul(u, row(gradients.s)), vh);
  const ofVectors = gradientOfVectors(operation, { u, s, vh }, gradients.u, gradients.vh);
  return ofValues && ofVectors ? add(ofValues, ofVectors) : (ofValues ?? ofVectors);
}

function gradientOfVectors(
  operation: string,
  { u, s, vh }: Factors,
  ofU: Tensor | null,
  ofVh: Tensor | null,
): Tensor | null {
  if (!ofU && !ofVh) return null;
  const [left, right] = [ofU && matmul(mH(u), ofU), ofVh && matmul(vh, mH(ofVh))];
  checkPhases(operation, left && right ? add(left, right) : (left ?? right)!);
  const differences = sub(row(s), column(s));
  const e = add(mul(differences, add(row(s), column(s))), eye(lastElement(s.shape), { dtype: s.dtype }));
  const parts: Tensor[] = [];
  if (ofU) {
    const inner = mul(div(skew(left!), e), row(s));
    parts.push(matmul(u, matmul(inner, vh)));
    if (u.shape.at(-2)! > lastElement(s.shape)) parts.push(matmul(outside(u, div(ofU, row(s))), vh));
  }
  if (ofVh) {
    const inner = mul(column(s), div(skew(right!), e));
    parts.push(matmul(matmul(u, inner), vh));
    if (lastElement(vh.shape) > lastElement(s.shape))
      parts.push(matmul(u, mH(outside(mH(vh), mH(div(ofVh, column(s)))))));
  }
  // The phases of each pair of columns of U and V change together. The diagonals of the two products do not determine
  // that change.
  if (left && right && isComplex(u.dtype))
    parts.push(matmul(matmul(u, div(diagonalPart(skew(left)), mul(row(s), 2))), vh));
  return parts.reduce((sum, part) => add(sum, part));
}

const row = (s: Tensor): Tensor => unsqueeze(s, -2);
const column = (s: Tensor): Tensor => unsqueeze(s, -1);
const skew = (x: Tensor): Tensor => sub(x, mH(x));

/** (I − Q Qᴴ) X. */
const outside = (q: Tensor, x: Tensor): Tensor => sub(x, matmul(q, matmul(mH(q), x)));
