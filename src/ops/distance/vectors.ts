/** Validation of operands that hold vectors along an axis. */
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { broadcastShapes, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkSameDType } from "../matmul/checks.ts";

/**
 * Checks that operands have one dtype (a float, or an integer with `takesIntegers`), at least one axis, and shapes that
 * broadcast.
 *
 * @returns the common shape
 */
export function checkVectors(
  operation: string,
  x1: Tensor,
  x2: Tensor,
  { takesIntegers = false }: { readonly takesIntegers?: boolean } = {},
): Shape {
  checkSameDType(operation, [x1, x2]);
  const both = `${x1.describe()} and ${x2.describe()}`;
  if (!isFloat(x1.dtype) && !takesIntegers)
    throw new DTypeError(operation, "notAFloat", `expected floats, got ${both}; convert with toDType(x, "float32")`);
  const shape = broadcastShapes(operation, x1.shape, x2.shape);
  if (shape.length === 0) throw new ShapeError(operation, "wrongRank", `expected at least one axis, got ${both}`);
  return shape;
}
