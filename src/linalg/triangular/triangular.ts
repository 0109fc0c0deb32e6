import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, parameters, required } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { neg } from "../../ops/elementwise/arithmetic.ts";
import { tril, triu } from "../../ops/indexing/triangle.ts";
import { plainMatmul as matmul } from "../../ops/matmul/plain_matmul.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  broadcastBatches,
  checkSameDType,
  denseOrTransposed,
  matrixOperand,
  mT,
  squareOperand,
  stridesLike,
} from "../matrices.ts";
import type { TriangularAttributes } from "./primitive.ts";
import { triangularCpu } from "./triangular.cpu.ts";
import { triangularMetal } from "./triangular.metal.ts";
import { triangularReference } from "./triangular.reference.ts";

const triangularPrimitive = definePrimitive<TriangularAttributes>({
  name: "solveTriangular",
  family: "linalg",
  implementations: { metal: triangularMetal, cpu: triangularCpu, reference: triangularReference },
});

/** Options of {@link solveTriangular}. */
export interface SolveTriangularOptions {
  /** Whether A is the upper or the lower triangle of `a`. The other triangle is not read. */
  upper: boolean;
  /** Solves A X = B if true, X A = B if false. Default true. */
  left?: boolean;
  /** Assumes that the diagonal of A is 1, and does not read it. Default false. */
  unitriangular?: boolean;
}

const solveParameters = parameters("solveTriangular", {
  a: operand(aTensor),
  b: operand(aTensor),
  upper: required(flag),
  left: named(flag, true),
  unitriangular: named(flag, false),
});

/**
 * Solves A X = B, or X A = B, for triangular matrices A. A zero on the diagonal gives infinity or NaN, as in PyTorch.
 *
 * @param a […, n, n], of a float or complex dtype; float16 and bfloat16 are computed in float32
 * @param b […, n, k], or […, k, n] if `left` is false, of the same dtype; batches broadcast
 * @returns X, of the shape of `b` with the broadcast batch
 *
 * @example
 * const a = tensor([[2, 0], [1, 4]]);
 * linalg.solveTriangular(a, tensor([[2], [9]]), { upper: false }); // float32 [[1], [2]]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if dtypes differ or are not floats.
 */
export function solveTriangular<D extends DType>(
  a: Tensor<D>,
  b: Tensor<D>,
  options: SolveTriangularOptions,
): Tensor<D>;
export function solveTriangular(...values: unknown[]): Tensor {
  const operation = "solveTriangular";
  const { a, b, upper, left, unitriangular } = solveParameters(values);
  const square = squareOperand(operation, a);
  const right = matrixOperand(operation, b, "b");
  checkSameDType(operation, a, b);
  checkInnerSize(a, b, left);
  if (!left) {
    const options = { upper: !upper, unitDiagonal: unitriangular };
    const turned = broadcastBatches(operation, mT(square), mT(right));
    return toDType(mT(triangularSolution(operation, ...turned, options)), a.dtype);
  }
  const options = { upper, unitDiagonal: unitriangular };
  return toDType(triangularSolution(operation, ...broadcastBatches(operation, square, right), options), a.dtype);
}

function checkInnerSize(a: Tensor, b: Tensor, left: boolean): void {
  const size = a.shape.at(-1);
  if (b.shape.at(left ? -2 : -1) === size) return;
  throw new ShapeError(
    "solveTriangular",
    "shapesDiffer",
    `expected b with ${size} ${left ? "rows" : "columns"} for a ${a.describe()}, got ${b.describe()}`,
  );
}

/**
 * Solves A X = B for float32 or float64 operands of one dtype, one batch shape and matching sizes.
 *
 * The gradient of B is Y = A⁻ᵀ X̄, and that of A is the triangle of −Y Xᵀ, without the diagonal if it is assumed to be
 * 1.
 */
export function triangularSolution(operation: string, a: Tensor, b: Tensor, attributes: TriangularAttributes): Tensor {
  const { upper, unitDiagonal } = attributes;
  const side = denseOrTransposed(b);
  const [x] = executeMany(
    triangularPrimitive,
    [denseOrTransposed(a), side],
    [{ shape: b.shape, dtype: b.dtype, strides: stridesLike(side) }],
    attributes,
    operation,
  );
  record(operation, [a, b], [x], [a, x], ([gradient], [factor, solution], needs) => {
    const ofB = triangularSolution(operation, mT(factor), gradient, { upper: !upper, unitDiagonal });
    if (!needs[0]) return [null, ofB];
    const product = neg(matmul(ofB, mT(solution)));
    const edge = unitDiagonal ? 1 : 0;
    return [upper ? triu(product, { diagonal: edge }) : tril(product, { diagonal: -edge }), needs[1] ? ofB : null];
  });
  return x;
}
