import { eye } from "../../ops/creation/eye.ts";
import { add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { div } from "../../ops/elementwise/division.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mT } from "../matrices.ts";

/** U, the singular values and Vᵀ, with one vector per singular value; or their gradients. */
export interface Factors<T = Tensor> {
  readonly u: T;
  readonly s: T;
  readonly vh: T;
}

/**
 * Computes the gradient of A = U Σ Vᵀ. With skew(X) = X − Xᵀ and E[i, j] = σ[j]² − σ[i]², 1 on the diagonal, it is
 *
 *   U ((skew(Uᵀ Ū) / E) Σ + Σ (skew(Vᵀ V̄) / E) + diag(σ̄)) Vᵀ + (I − U Uᵀ) Ū Σ⁻¹ Vᵀ + U Σ⁻¹ V̄ᵀ (I − V Vᵀ).
 *
 * Source: J. Townsend, "Differentiating the singular value decomposition", 2016.
 */
export function svdGradient({ u, s, vh }: Factors, gradients: Factors<Tensor | null>): Tensor | null {
  const ofValues = gradients.s && matmul(mul(u, row(gradients.s)), vh);
  const ofVectors = gradientOfVectors({ u, s, vh }, gradients.u, gradients.vh);
  return ofValues && ofVectors ? add(ofValues, ofVectors) : (ofValues ?? ofVectors);
}

function gradientOfVectors({ u, s, vh }: Factors, ofU: Tensor | null, ofVh: Tensor | null): Tensor | null {
  if (!ofU && !ofVh) return null;
  const differences = sub(row(s), column(s));
  const e = add(mul(differences, add(row(s), column(s))), eye(s.shape.at(-1)!, { dtype: s.dtype as "float32" }));
  const parts: Tensor[] = [];
  if (ofU) {
    const inner = mul(div(skew(matmul(mT(u), ofU)), e), row(s));
    parts.push(matmul(u, matmul(inner, vh)));
    if (u.shape.at(-2)! > s.shape.at(-1)!) parts.push(matmul(outside(u, div(ofU, row(s))), vh));
  }
  if (ofVh) {
    const inner = mul(column(s), div(skew(matmul(vh, mT(ofVh))), e));
    parts.push(matmul(matmul(u, inner), vh));
    if (vh.shape.at(-1)! > s.shape.at(-1)!) parts.push(matmul(u, mT(outside(mT(vh), mT(div(ofVh, column(s)))))));
  }
  return parts.reduce((sum, part) => add(sum, part));
}

const row = (s: Tensor): Tensor => unsqueeze(s, -2);
const column = (s: Tensor): Tensor => unsqueeze(s, -1);
const skew = (x: Tensor): Tensor => sub(x, mT(x));

/** (I − Q Qᵀ) X. */
const outside = (q: Tensor, x: Tensor): Tensor => sub(x, matmul(q, matmul(mT(q), x)));
