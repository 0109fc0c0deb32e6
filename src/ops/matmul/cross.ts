import { record } from "../../autograd/record.ts";
import { execute, underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { axis } from "../../core/kinds.ts";
import { type Given, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { broadcastShapes, normalizeAxis, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous } from "../copy/copy.ts";
import { mul, sub } from "../elementwise/arithmetic.ts";
import { cat } from "../join/cat.ts";
import { expand, sumTo } from "../view/expand.ts";
import { movedim } from "../view/permute.ts";
import { narrow } from "../view/slice.ts";
import { checkSameDType, factors } from "./checks.ts";
import { crossPrimitive, hasCrossKernel } from "./cross.cpu.ts";

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
  if (hasCrossKernel(a, b)) return inOnePass(a, b, along, shape);
  return underName("cross", () =>
    tidy(() => {
      // the vectors' elements in rows, stored twice, so that rotations by one and by two are dense views
      const [left, right] = [a, b].map((x) => {
        const rows = movedim(expand(x, shape), along, 0);
        return cat([rows, narrow(rows, 0, 0, 2)], 0);
      });
      const turned = (x: Tensor, by: number): Tensor => narrow(x, 0, by, 3);
      const rows = sub(mul(turned(left, 1), turned(right, 2)), mul(turned(left, 2), turned(right, 1)));
      return contiguous(movedim(rows, 0, along));
    }),
  );
}
cross.method = "promoted" as const;
const crossParameters = parameters("cross", { ...factors, dim: optional(axis, -1) });

/** The gradients are b × g and g × a. */
function inOnePass(a: Tensor, b: Tensor, axis: number, shape: Shape): Tensor {
  const output = execute(crossPrimitive, [a, b], shape, a.dtype, { axis });
  const [ofA, ofB] = [a.shape, b.shape];
  record("cross", [a, b], [output], [a, b], ([g], [x, y], needs) => [
    needs[0] ? sumTo(cross(y, g, { dim: axis }), ofA) : null,
    needs[1] ? sumTo(cross(g, x, { dim: axis }), ofB) : null,
  ]);
  return output;
}
