import { execute, underName } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { ArgumentError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { add, mul } from "./arithmetic.ts";
import { defineBinary, defineUnary, renamed } from "./define.ts";
import { digamma as exactDigamma, lgamma as exactLgamma, polygamma as exactPolygamma } from "./gamma.reference.ts";
import { gammaPairPrimitive } from "./incomplete_gamma.cpu.ts";
import type { BinaryOperation, FloatOf, FloatOperation } from "./types.ts";

/** Computes polygamma; the first operand is the order. */
const polygammaOf: BinaryOperation = defineBinary("polygamma", {
  isPublic: false,
  takes: "floats",
  saves: "operands",
  reference: { float: exactPolygamma },
  gradient: (g, order, x, needs) => [null, needs[1] ? mul(g, polygammaOf(add(order, 1), x)) : null],
});

/**
 * Computes ln |Γ(x)|, the logarithm of the gamma function's magnitude, for each element; ∞ at 0 and at negative
 * integers. The gradient is {@link digamma}. @see {@link exp}
 *
 * @example
 * lgamma(tensor([0.5, 5])); // float32 [0.572365, 3.17805]
 */
export const lgamma: FloatOperation = defineUnary("lgamma", {
  takes: "floats",
  saves: "input",
  reference: { float: exactLgamma },
  gradient: (g, x) => mul(g, digamma(x)),
});

/**
 * Computes ψ(x) = Γ′(x)/Γ(x), the derivative of {@link lgamma}, for each element; −∞ at 0, ∞ at −0 and NaN at negative
 * integers. The gradient is `polygamma(1, x)`. @see {@link exp}
 *
 * @example
 * digamma(tensor([1, 2])); // float32 [-0.577216, 0.422784]
 */
export const digamma: FloatOperation = defineUnary("digamma", {
  takes: "floats",
  saves: "input",
  reference: { float: exactDigamma },
  gradient: (g, x) => mul(g, polygammaOf(1, x)),
});

const MOST = 170;
const ofOrder0: FloatOperation = renamed("polygamma", digamma);

/**
 * Computes the derivative of order n of {@link digamma} for each element: (−1)ⁿ⁺¹ · n! · Σ 1/(x + k)ⁿ⁺¹ over k ≥ 0. At
 * 0 and at negative integers, it is ∞ for odd n and −∞ for even n. Integers become float32. The gradient is
 * `polygamma(n + 1, x)`.
 *
 * @param n the order, an integer from 0 to 170 (float64 can't represent larger factorials); order 0 is digamma
 * @returns a tensor of x's shape
 *
 * @example
 * polygamma(1, tensor([1, 2])); // float32 [1.64493, 0.644934]
 *
 * @throws {ArgumentError} for any other order.
 */
export function polygamma<D extends DType>(n: number, x: Tensor<D>): Tensor<FloatOf<D>>;
export function polygamma(...values: unknown[]): Tensor {
  const { n, x } = polygammaParameters(values);
  if (!Number.isInteger(n) || n < 0 || n > MOST)
    throw new ArgumentError("polygamma", "invalidOrder", `expected n to be a whole number from 0 to ${MOST}, got ${n}`);
  if (n === 0) return ofOrder0(x);
  if (!isFloat(x.dtype) || !fusesOnCpu(x)) return polygammaOf(n, x);
  return underName("polygamma", () =>
    tidy(() => {
      const wide = contiguous(toDType(x, accumulationDType(x.dtype)));
      const attributes = { function: "polygamma", order: n } as const;
      return toDType(execute(gammaPairPrimitive, [wide, wide], x.shape, wide.dtype, attributes), x.dtype);
    }),
  );
}
const polygammaParameters = parameters("polygamma", { n: operand(someNumber), x: operand(aTensor) });
