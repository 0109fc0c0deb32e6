import { underName } from "../../backend/dispatch.ts";
import { parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { elementCount, MAX_RANK, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { permute } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { factors } from "./checks.ts";
import { fusesKron, matrixKron } from "./kron.cpu.ts";

/**
 * Computes the Kronecker product: each element of `a` is replaced by its product with the whole of `b`. The operand of
 * lower rank gets leading axes of size 1. Dtypes are promoted as by `mul`.
 *
 * @param a [m₁, …, mᵣ]
 * @param b [n₁, …, nᵣ]
 * @returns [m₁ n₁, …, mᵣ nᵣ]
 *
 * @example
 * kron(tensor([[1, 2]]), tensor([[1], [10]])); // float32 [[1, 2], [10, 20]]
 */
export function kron<A extends DType, B extends DType>(a: Tensor<A>, b: Tensor<B>): Tensor<Promote<A, B>>;
export function kron(...values: unknown[]): Tensor {
  const { a, b } = kronParameters(values);
  const rank = Math.max(a.rank, b.rank);
  const [left, right] = [padded(a.shape, rank), padded(b.shape, rank)];
  const shape = left.map((size, axis) => size * right[axis]);
  return underName("kron", () => {
    if (fusesKron(a, b)) return matrixKron(a, b, shape);
    const interleaved = 2 * rank <= MAX_RANK ? broadcastPairs(a, b, left, right) : permutedPairs(a, b, left, right);
    return reshape(interleaved, shape);
  });
}
kron.method = "promoted" as const;
const kronParameters = parameters("kron", factors);

const padded = (shape: Shape, rank: number): number[] => [...Array<number>(rank - shape.length).fill(1), ...shape];

/** Returns [m₁, n₁, m₂, n₂, …] by broadcasting [m₁, 1, m₂, 1, …] with [1, n₁, 1, n₂, …]. */
const broadcastPairs = (a: Tensor, b: Tensor, left: Shape, right: Shape): Tensor =>
  mul(
    reshape(
      a,
      left.flatMap((size) => [size, 1]),
    ),
    reshape(
      b,
      right.flatMap((size) => [1, size]),
    ),
  );

/**
 * Returns the same elements without a tensor of that many axes: computes all products, then permutes one axis at a
 * time.
 */
function permutedPairs(a: Tensor, b: Tensor, left: Shape, right: Shape): Tensor {
  let pairs: Tensor = mul(reshape(a, [a.size, 1]), reshape(b, [1, b.size]));
  let done = 1;
  for (const [axis, size] of left.entries()) {
    const other = right[axis];
    const [after, otherAfter] = [elementCount(left.slice(axis + 1)), elementCount(right.slice(axis + 1))];
    pairs = permute(reshape(pairs, [done, size, after, other, otherAfter]), [0, 1, 3, 2, 4]);
    done *= size * other;
  }
  return pairs;
}
