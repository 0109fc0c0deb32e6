/** Maximum and minimum that ignore NaN. */
import { underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { maximum, minimum } from "./extrema.ts";
import { promoteOperands } from "./operands.ts";
import { isnan } from "./predicates.ts";
import type { BinaryOperation, Operand, ResultOf } from "./types.ts";
import { where } from "./where.ts";

const pair = { a: operand(tensorOrScalar), b: operand(tensorOrScalar) } as const;

/**
 * Returns the larger of each pair of elements, with broadcasting; if one is NaN, the other. Equal elements share the
 * gradient. @see {@link maximum}
 *
 * @example
 * fmax(tensor([1, NaN, 5]), 3); // float32 [3, 3, 5]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function fmax<A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>>;
export function fmax(...values: unknown[]): Tensor {
  const { a, b } = fmaxParameters(values);
  return ofNumbers("fmax", maximum, a, b);
}
fmax.method = "promoted" as const;
const fmaxParameters = parameters("fmax", pair);

/**
 * Returns the smaller of each pair of elements, with broadcasting; if one is NaN, the other. Equal elements share the
 * gradient. @see {@link minimum}
 *
 * @example
 * fmin(tensor([1, NaN, 5]), 3); // float32 [1, 3, 3]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function fmin<A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>>;
export function fmin(...values: unknown[]): Tensor {
  const { a, b } = fminParameters(values);
  return ofNumbers("fmin", minimum, a, b);
}
fmin.method = "promoted" as const;
const fminParameters = parameters("fmin", pair);

/** Computes the extremum after replacing each NaN by the other operand. */
const ofNumbers = (operation: string, extremum: BinaryOperation, a: Operand, b: Operand): Tensor =>
  underName(operation, () =>
    tidy(() => {
      const [left, right] = promoteOperands(operation, [a, b]) as [Tensor, Tensor];
      broadcastShapes(operation, left.shape, right.shape);
      if (!isFloat(left.dtype)) return extremum(left, right);
      return extremum(where(isnan(left), right, left), where(isnan(right), left, right));
    }),
  );
