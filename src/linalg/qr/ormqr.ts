import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add, neg } from "../../ops/elementwise/arithmetic.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkSameDType, dense, matrixOperand, mT } from "../matrices.ts";
import { reflectionOperands } from "./householder_product.ts";
import { ormqrCpu } from "./ormqr.cpu.ts";
import { ormqrMetal } from "./ormqr.metal.ts";
import { ormqrReference } from "./ormqr.reference.ts";
import type { OrmqrAttributes } from "./primitive.ts";
import { compactForm, reflectionGradients } from "./reflections.ts";

const ormqrPrimitive = definePrimitive<OrmqrAttributes>({
  name: "ormqr",
  family: "linalg",
  implementations: { metal: ormqrMetal, cpu: ormqrCpu, reference: ormqrReference },
});

/** Options of {@link ormqr}. */
export interface OrmqrOptions {
  /** Multiplies C by Q from the left if true, from the right if false. Default true. */
  left?: boolean;
  /** Multiplies by Qᵀ instead of Q. Default false. */
  transpose?: boolean;
}

/**
 * Computes Q C, Qᵀ C, C Q or C Qᵀ for the square Q = H[0] H[1] … of `geqrf`, without forming Q.
 *
 * @param a […, m, n], as from `geqrf`, of a float dtype; float16 and bfloat16 are computed in float32
 * @param tau […, k] with k ≤ min(m, n), of the same dtype and batch
 * @param c […, m, p], or […, p, m] if `left` is false, of the same dtype and batch
 * @returns the product, of the shape of `c`
 *
 * @example
 * const { a, tau } = linalg.geqrf(tensor([[3], [4]]));
 * linalg.ormqr(a, tau, tensor([[3], [4]]), { transpose: true }); // float32 [[-5], [0]]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if dtypes differ or are not floats.
 */
export function ormqr<D extends DType>(
  a: Tensor<D>,
  tau: Tensor<D>,
  c: Tensor<D>,
  ...options: Given<OrmqrOptions, ["left", "transpose"]>
): Tensor<D>;
export function ormqr(...values: unknown[]): Tensor {
  const { a, tau, c, left, transpose } = ormqrParameters(values);
  const [vectors, scales] = reflectionOperands("ormqr", a, tau);
  const other = matrixOperand("ormqr", c, "c");
  checkSameDType("ormqr", a, c);
  checkFits(a, c, left);
  const result = left
    ? apply(vectors, scales, other, { transpose })
    : mT(apply(vectors, scales, mT(other), { transpose: !transpose }));
  return toDType(result, a.dtype);
}
const ormqrParameters = parameters("ormqr", {
  a: operand(aTensor),
  tau: operand(aTensor),
  c: operand(aTensor),
  left: optional(flag, true),
  transpose: optional(flag, false),
});

function checkFits(a: Tensor, c: Tensor, left: boolean): void {
  const size = a.shape.at(-2);
  if (c.shape.at(left ? -2 : -1) === size && sameShape(a.shape.slice(0, -2), c.shape.slice(0, -2))) return;
  throw new ShapeError(
    "ormqr",
    "shapesDiffer",
    `expected c with ${size} ${left ? "rows" : "columns"} and the batch of a ${a.describe()}, got ${c.describe()}`,
  );
}

/**
 * Computes Q C or Qᵀ C. With Q = I − V T Vᵀ, B = Vᵀ C and G = Vᵀ P̄ for the product P = Q C, the gradient of T is −G
 * Bᵀ, that of V is −P̄ (T B)ᵀ − C (Tᵀ G)ᵀ, and that of C is Qᵀ P̄. For Qᵀ, use Tᵀ in place of T.
 */
export function apply(a: Tensor, tau: Tensor, c: Tensor, attributes: OrmqrAttributes): Tensor {
  const inputs = [dense(a), dense(tau), dense(c)];
  const result = execute(ormqrPrimitive, inputs, c.shape, c.dtype, attributes, "ormqr");
  const { transpose } = attributes;
  record("ormqr", [a, tau, c], [result], [a, tau, c], ([gradient], [savedA, scales, other], needs) => {
    const given = gradient;
    const ofC = needs[2] ? apply(savedA, scales, given, { transpose: !transpose }) : null;
    if (!needs[0] && !needs[1]) return [null, null, ofC];
    const form = compactForm(savedA, scales);
    const t = transpose ? mT(form.t) : form.t;
    const inner = matmul(mT(form.v), other);
    const outer = matmul(mT(form.v), given);
    const ofT = neg(transpose ? matmul(inner, mT(outer)) : matmul(outer, mT(inner)));
    const ofV = neg(add(matmul(given, mT(matmul(t, inner))), matmul(other, mT(matmul(mT(t), outer)))));
    return [...reflectionGradients(form, ofV, ofT, lastElement(savedA.shape)), ofC];
  });
  return result;
}
