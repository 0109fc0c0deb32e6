/** The gradient of a choice between two operands. */
import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "./arithmetic.ts";
import { eq, lt } from "./comparison.ts";
import { where } from "./where.ts";

/**
 * Returns the gradient of an operand that is the result if `smaller` < `larger`: g in that case, half of g if both are
 * equal, else 0.
 */
export const chosen = (g: Tensor, smaller: Tensor, larger: Tensor): Tensor =>
  where(lt(larger, smaller), 0, where(eq(smaller, larger), mul(g, 0.5), g));
