/**
 * Local derivatives of reductions: elementwise functions of an element x and its result y, from which gradients are
 * computed.
 */
import { needsGradient, record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { abs, mul, neg } from "../elementwise/arithmetic.ts";
import { eq } from "../elementwise/comparison.ts";
import { pow } from "../elementwise/power.ts";
import { where } from "../elementwise/where.ts";
import { sumTo } from "../view/expand.ts";
import { derivativeCpu, selectCpu } from "./derivatives.cpu.ts";
import { derivativeMetal, selectMetal } from "./derivatives.metal.ts";
import { derivativeReference, selectReference } from "./derivatives.reference.ts";
import type { DerivativeAttributes, DerivativeName, SelectAttributes } from "./primitive.ts";

const derivativePrimitive = definePrimitive<DerivativeAttributes>({
  name: "reductionDerivative",
  family: "reduction",
  implementations: { metal: derivativeMetal, cpu: derivativeCpu, reference: derivativeReference },
});

const derivative = (x: Tensor, y: Tensor, name: DerivativeName, parameter = 0): Tensor =>
  execute(derivativePrimitive, [x, y], broadcastShapes(name, x.shape, y.shape), x.dtype, { name, parameter });

/** `ties` and `signOf` are step functions. Their derivative is 0, so they are not recorded. */
export const ties = (x: Tensor, y: Tensor): Tensor => derivative(x, y, "tie");
export const signOf = (x: Tensor): Tensor => derivative(x, x, "sign");

/** Computes x / y, and 0 where y is 0. */
export function dividedWhereNotZero(x: Tensor, y: Tensor): Tensor {
  const output = derivative(x, y, "quotient");
  const [shape, other] = [x.shape, y.shape];
  record("reductionDerivative", [x, y], [output], [x, y], ([gradient], [a, b], needs) => {
    const share = dividedWhereNotZero(gradient, b);
    return [
      needs[0] ? sumTo(share, shape) : null,
      needs[1] ? sumTo(neg(mul(share, dividedWhereNotZero(a, b))), other) : null,
    ];
  });
  return output;
}

/**
 * Computes the gradient of the norm of order p, sign(x) |x / y|^(p−1); 0 where x or y is 0. If this gradient is itself
 * differentiated, it is composed of other operations, whose gradients are 0 at those elements too.
 */
export function powerDerivative(x: Tensor, y: Tensor, p: number): Tensor {
  if (!needsGradient(x, y)) return derivative(x, y, "power", p);
  const share = abs(dividedWhereNotZero(x, y));
  const isZero = eq(share, 0);
  const safe = where(isZero, 1, share);
  return mul(signOf(x), where(isZero, 0, pow(safe, p - 1)));
}

const selectPrimitive = definePrimitive<SelectAttributes>({
  name: "selectAt",
  family: "reduction",
  implementations: { metal: selectMetal, cpu: selectCpu, reference: selectReference },
});

/** Returns x where an element's position along the axis equals the index there, else 0. Both have the same shape. */
export function selectAt(x: Tensor, indices: Tensor, axis: number): Tensor {
  const output = execute(selectPrimitive, [x, indices], x.shape, x.dtype, { axis });
  record("selectAt", [x], [output], [indices], ([gradient], [saved]) => [selectAt(gradient, saved, axis)]);
  return output;
}
