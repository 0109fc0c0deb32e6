import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { axis } from "../../core/kinds.ts";
import { type Given, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { broadcastShapes, normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul, sub } from "../elementwise/arithmetic.ts";
import { roll } from "../join/roll.ts";
import { expand } from "../view/expand.ts";
import { checkSameDType, factors } from "./checks.ts";

/** Options of {@link cross}. */
export interface CrossOptions {
  /** The axis of the vectors' three elements. Default: the last axis. */
  dim?: number;
}

/**
 * Computes the cross products of vectors of three elements: a₁b₂ − a₂b₁, a₂b₀ − a₀b₂, a₀b₁ − a₁b₀. Other axes
 * broadcast. Like `torch.linalg.cross`, it uses the last axis by default; `torch.cross` uses the first axis of size 3.
 *
 * @param a […, 3], of numbers
 * @param b […, 3], of the same dtype and rank
 *
 * @example
 * cross(tensor([1, 0, 0]), tensor([0, 1, 0])); // float32 [0, 0, 1]
 *
 * @throws {ShapeError} if the axis does not have three elements, ranks differ, or shapes do not broadcast.
 * @throws {DTypeError} if dtypes differ, and for bool.
 */
export function cross<A extends DType, B extends DType>(
  a: Tensor<A>,
  b: Tensor<B>,
  ...options: Given<CrossOptions, ["dim"]>
): Tensor<Promote<A, B>>;
export function cross(...values: unknown[]): Tensor {
  const { a, b, dim } = crossParameters(values);
  checkSameDType("cross", [a, b]);
  const along = normalizeAxis("cross", dim, a.rank);
  if (a.rank !== b.rank || a.shape[along] !== 3 || b.shape[along] !== 3)
    throw new ShapeError(
      "cross",
      "shapesDiffer",
      `expected operands of equal rank with three elements along dim ${dim}, got ${a.describe()} and ${b.describe()}`,
    );
  const shape = broadcastShapes("cross", a.shape, b.shape);
  const turned = (x: Tensor, by: number): Tensor => roll(expand(x, shape), -by, along);
  return underName("cross", () => sub(mul(turned(a, 1), turned(b, 2)), mul(turned(a, 2), turned(b, 1))));
}
cross.method = "promoted" as const;
const crossParameters = parameters("cross", { ...factors, dim: optional(axis, -1) });
