import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add, neg } from "../../ops/elementwise/arithmetic.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkSameDType, dense, floatOperand, matrixOperand, mT } from "../matrices.ts";
import { productCpu } from "./householder_product.cpu.ts";
import { productMetal } from "./householder_product.metal.ts";
import { productReference } from "./householder_product.reference.ts";
import { compactForm, firstRows, padRows, reflectionGradients } from "./reflections.ts";

const productPrimitive = definePrimitive<undefined>({
  name: "householderProduct",
  family: "linalg",
  implementations: { metal: productMetal, cpu: productCpu, reference: productReference },
});

/**
 * Computes the first n columns of a product of reflections H[0] H[1] … H[k − 1], with H[i] = I − tau[i] v vᵀ. v is 0
 * before row i, 1 in row i, and equal to column i of `a` below it. For the result of `geqrf`, they are Q.
 *
 * @param a […, m, n] with n ≤ m, of a float dtype; float16 and bfloat16 are computed in float32
 * @param tau […, k] with k ≤ n, of the same dtype and batch
 * @returns […, m, n]
 *
 * @example
 * linalg.householderProduct(tensor([[-5], [0.5]]), tensor([1.6])); // float32 [[-0.6], [-0.8]]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if dtypes differ or are not floats.
 */
export function householderProduct<D extends DType>(a: Tensor<D>, tau: Tensor<D>): Tensor<D>;
export function householderProduct(...values: unknown[]): Tensor {
  const operation = "householderProduct";
  const { a, tau } = productParameters(values);
  const [vectors, scales] = reflectionOperands(operation, a, tau);
  const [rows, columns] = tupleOf(vectors.shape.slice(-2), 2);
  if (columns > rows)
    throw new ShapeError(operation, "wide", `expected a to have at most as many columns as rows, got ${a.describe()}`);
  return toDType(product(operation, vectors, scales), a.dtype);
}
const productParameters = parameters("householderProduct", { a: operand(aTensor), tau: operand(aTensor) });

/** Checks both operands, and converts them to the compute dtype. */
export function reflectionOperands(operation: string, a: Tensor, tau: Tensor): [Tensor, Tensor] {
  const matrix = matrixOperand(operation, a);
  const scales = floatOperand(operation, tau, "tau");
  checkSameDType(operation, a, tau);
  const batch = a.shape.slice(0, -2);
  const most = Math.min(lastElement(a.shape), a.shape.at(-2)!);
  if (tau.rank === a.rank - 1 && sameShape(tau.shape.slice(0, -1), batch) && lastElement(tau.shape) <= most)
    return [matrix, scales];
  throw new ShapeError(
    operation,
    "shapesDiffer",
    `expected tau of ${formatShape([...batch, most])} (or fewer in its last axis) for a ${a.describe()}, ` +
      `got ${tau.describe()}`,
  );
}

/**
 * Computes the product, with as many columns as `a`. With Q = E − V T V₁ᵀ, where V₁ is the first rows of V, the
 * gradient of T is −Vᵀ Q̄ V₁, and that of V is −Q̄ V₁ Tᵀ − [Q̄ᵀ V T; 0].
 */
export function product(operation: string, a: Tensor, tau: Tensor): Tensor {
  const q = execute(productPrimitive, [dense(a), dense(tau)], a.shape, a.dtype, undefined, operation);
  record(operation, [a, tau], [q], [a, tau], ([gradient], [savedA, scales]) => {
    const form = compactForm(savedA, scales);
    const [rows, columns] = tupleOf(savedA.shape.slice(-2), 2);
    const given = gradient;
    const outer = matmul(given, firstRows(form.v, columns));
    const ofT = neg(matmul(mT(form.v), outer));
    const ofTop = matmul(mT(given), matmul(form.v, form.t));
    const ofV = neg(add(matmul(outer, mT(form.t)), padRows(ofTop, rows)));
    return reflectionGradients(form, ofV, ofT, columns);
  });
  return q;
}
