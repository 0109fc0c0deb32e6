import { DTypeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { hasGradients } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { mul, sub } from "./arithmetic.ts";
import { defineTernary, type Ternary } from "./define.ts";
import { promoteOperands } from "./operands.ts";
import type { Operand, ResultOf } from "./types.ts";

const interpolate: Ternary = defineTernary("lerp", {
  reference: {
    float: (a, b, weight) => (Math.abs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight)),
  },
  gradient: (g, [a, b, weight], needs) => [
    needs[0] ? mul(g, sub(1, weight)) : null,
    needs[1] ? mul(g, weight) : null,
    needs[2] ? mul(g, sub(b, a)) : null,
  ],
});

/**
 * Interpolates linearly: a + weight·(b − a) for each element, with broadcasting; exactly a at weight 0 and b at 1.
 * Other weights outside [0, 1] extrapolate.
 *
 * @param weight a number or a tensor
 *
 * @example
 * lerp(tensor([0, 10]), tensor([10, 20]), 0.25); // float32 [2.5, 12.5]
 *
 * @throws {DTypeError} for integers. @throws {ShapeError} if the shapes can't be broadcast together.
 */
export function lerp<A extends Operand, B extends Operand>(a: A, b: B, weight: Operand): Tensor<ResultOf<A, B>>;
export function lerp(...values: unknown[]): Tensor {
  const { a, b, weight } = lerpParameters(values);
  const operands = promoteOperands("lerp", [a, b, weight]);
  for (const operand of [a, b])
    if (operand instanceof Tensor && !hasGradients(operand.dtype))
      throw new DTypeError("lerp", "notAFloat", `expected floats, got ${operand.describe()}; convert with toDType()`);
  return interpolate(operands);
}
lerp.method = "promoted" as const;
const lerpParameters = parameters("lerp", {
  a: operand(tensorOrScalar),
  b: operand(tensorOrScalar),
  weight: operand(tensorOrScalar),
});
