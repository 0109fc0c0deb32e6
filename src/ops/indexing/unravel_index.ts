import { underName } from "../../backend/dispatch.ts";
import { DTypeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor, shapeList } from "../../tensor/kinds.ts";
import { checkShape, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { floorDivide, remainder } from "../elementwise/division.ts";

/**
 * Converts indices into a flattened tensor to one index per axis of its shape, each of the shape of `indices`. Indices
 * are not checked: one beyond the last element wraps around on the first axis.
 *
 * @param shape sizes above 0
 *
 * @example
 * unravelIndex(tensor([4n, 5n]), [2, 3]); // two int64 tensors: [1, 1] and [1, 2]
 *
 * @throws {DTypeError} for indices of floats or bools.
 * @throws {ShapeError} for an invalid shape.
 */
export function unravelIndex(indices: Tensor, shape: Shape): Tensor<"int64">[];
export function unravelIndex(...values: unknown[]): Tensor<"int64">[] {
  const { indices, shape } = unravelParameters(values);
  if (isFloat(indices.dtype) || indices.dtype === "bool")
    throw new DTypeError("unravelIndex", "notIntegers", `expected indices to be integers, got ${indices.describe()}`);
  const sizes = checkShape("unravelIndex", shape);
  return underName("unravelIndex", () =>
    tidy(() => {
      let rest = toDType(indices, "int64");
      const found: Tensor<"int64">[] = [];
      for (const [left, size] of sizes.toReversed().entries()) {
        const divisor = BigInt(Math.max(size, 1));
        found.unshift(remainder(rest, divisor));
        if (left < sizes.length - 1) rest = floorDivide(rest, divisor);
      }
      return found;
    }),
  );
}
const unravelParameters = parameters("unravelIndex", { indices: operand(aTensor), shape: required(shapeList) });
