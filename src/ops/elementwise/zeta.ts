import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { expand } from "../view/expand.ts";
import { add, mul, neg, sub } from "./arithmetic.ts";
import { eq, gt } from "./comparison.ts";
import { div } from "./division.ts";
import { gammaPairPrimitive, hasGammaPair } from "./incomplete_gamma.cpu.ts";
import { logicalAnd } from "./logic.ts";
import { promoteOperands } from "./operands.ts";
import { pow } from "./power.ts";
import type { Operand, ResultOf } from "./types.ts";
import { where } from "./where.ts";
import { withoutDerivative } from "./without_derivative.ts";

/** The number of terms that are added one by one. */
const TERMS = 10;
/** B₂ₖ/(2k)! of the Bernoulli numbers, for k = 1, 2, … */
const bernoulli = [
  1 / 12,
  -1 / 720,
  1 / 30240,
  -1 / 1209600,
  1 / 47900160,
  -691 / 1307674368000,
  1 / 74724249600,
  -3617 / 10670622842880000,
];

/** The Euler-Maclaurin formula. Source: NIST Digital Library of Mathematical Functions, 25.11.28. */
function hurwitz(s: Tensor, q: Tensor): Tensor {
  if (hasGammaPair(s, q))
    return execute(gammaPairPrimitive, [contiguous(s), contiguous(q)], q.shape, q.dtype, {
      function: "zeta",
      order: 0,
    });
  const isInside = logicalAnd(gt(s, 1), gt(q, 0));
  const [safeS, safeQ] = [where(isInside, s, 2), where(isInside, q, 1)];
  const minusS = neg(safeS);
  let sum = pow(safeQ, minusS);
  for (let k = 1; k < TERMS; k++) sum = add(sum, pow(add(safeQ, k), minusS));
  const a = add(safeQ, TERMS);
  const power = pow(a, minusS);
  sum = add(sum, add(div(mul(power, a), sub(safeS, 1)), mul(power, 0.5)));
  let factor = div(mul(power, safeS), a);
  for (const [at, coefficient] of bernoulli.entries()) {
    sum = add(sum, mul(factor, coefficient));
    const k = 2 * at + 1;
    factor = div(div(mul(mul(factor, add(safeS, k)), add(safeS, k + 1)), a), a);
  }
  const atPole = where(logicalAnd(eq(s, 1), gt(q, 0)), Number.POSITIVE_INFINITY, Number.NaN);
  return where(isInside, sum, atPole);
}

/**
 * Computes the Hurwitz zeta function Σ (q + k)⁻ˢ over k from 0 to ∞ for each pair of elements, with broadcasting. It is
 * ∞ at s = 1, and NaN for s below 1 and for q that is not above 0. Integers become float32. Only q has a gradient: as
 * in PyTorch, backward() throws an `AutogradError` if s requires one.
 *
 * @example
 * zeta(tensor([2, 4]), 1); // float32 [1.64493, 1.08232]
 *
 * @throws {ShapeError} if the operands can't be broadcast.
 */
export function zeta<A extends Operand, B extends Operand>(s: A, q: B): Tensor<ResultOf<A, B>>;
export function zeta(...values: unknown[]): Tensor {
  const given = zetaParameters(values);
  return underName("zeta", () =>
    tidy(() => {
      const [left, right] = promoteOperands("zeta", [given.s, given.q], "floats");
      const shape = broadcastShapes("zeta", left.shape, right.shape);
      const wideOf = (own: Tensor) => expand(toDType(own, accumulationDType(left.dtype)), shape);
      const [s, q] = [wideOf(left), wideOf(right)];
      const value = noGrad(() => tidy(() => hurwitz(s, q)));
      record("zeta", [s, q], [value], [s, q], ([g], [savedS, savedQ], [needsS]) => {
        if (needsS) throw withoutDerivative("zeta", "s");
        return [null, mul(g, mul(neg(savedS), zeta(add(savedS, 1), savedQ)))];
      });
      return toDType(value, left.dtype);
    }),
  );
}
zeta.method = "promoted" as const;
const zetaParameters = parameters("zeta", { s: operand(tensorOrScalar), q: operand(tensorOrScalar) });
