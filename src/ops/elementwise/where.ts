import { DTypeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { computesOverLast, defineTernary, type Ternary } from "./define.ts";
import { promoteOperands } from "./operands.ts";
import type { Operand, ResultOf } from "./types.ts";

const choose: Ternary = defineTernary("where", {
  reference: { float: (condition, a, b) => (condition ? a : b), integer: (condition, a, b) => (condition ? a : b) },
  gradient: (g, [condition], needs) => [
    null,
    needs[1] ? where(condition, g, 0) : null,
    needs[2] ? where(condition, 0, g) : null,
  ],
});

/**
 * Selects a where the condition is true, b elsewhere, with broadcasting. a and b are promoted to a common dtype.
 *
 * @param condition of dtype bool
 *
 * @example
 * where(gt(x, 0), x, mul(x, 0.1)); // a leaky relu
 *
 * @throws {DTypeError} if the condition is not bool. @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function where<A extends Operand, B extends Operand>(condition: Tensor, a: A, b: B): Tensor<ResultOf<A, B>>;
export function where(...values: unknown[]): Tensor {
  const { condition, a, b } = whereParameters(values);
  if (condition.dtype !== "bool")
    throw new DTypeError(
      "where",
      "notBool",
      `expected the condition to be bool, got ${condition.describe()}; ne(x, 0) makes one`,
    );
  const [yes, no] = promoteOperands("where", [a, b]);
  return choose([condition, yes, no]);
}
const whereParameters = parameters("where", {
  condition: operand(aTensor),
  a: operand(tensorOrScalar),
  b: operand(tensorOrScalar),
});
computesOverLast(where, choose);
