/** Elementwise functions that are composed of other operations, with their gradients. */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { accumulationDType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul } from "./arithmetic.ts";
import type { FloatOperation } from "./types.ts";

/** A function of each element. */
export interface Composition {
  /** Computes it from float32 or float64. */
  readonly compute: (x: Tensor) => Tensor;
  /** Computes the gradient from that of the result, the operand and the result. Default: none. */
  readonly gradient?: (g: Tensor, x: Tensor, y: Tensor) => Tensor;
}

/** Defines a function of each element: 16-bit floats are computed in float32, and integers become float32. */
export function composeUnary(name: string, { compute, gradient }: Composition): FloatOperation {
  const read = parameters(name, { x: operand(aTensor) });
  const compose = (x: Tensor): Tensor => {
    const dtype = isFloat(x.dtype) ? x.dtype : "float32";
    const wide: Tensor = toDType(x, accumulationDType(dtype));
    const y = noGrad(() => tidy(() => compute(wide)));
    if (gradient !== undefined) record(name, [wide], [y], [wide, y], ([g], [sx, sy]) => [gradient(g, sx, sy)]);
    return toDType(y, dtype);
  };
  return Object.assign(
    ((...values: unknown[]) => underName(name, () => tidy(() => compose(read(values).x)))) as never,
    { method: "float" },
  ) as FloatOperation;
}

/** Evaluates a polynomial by Horner's rule, the highest coefficient first. */
export function polynomialOf(x: Tensor, coefficients: readonly number[]): Tensor {
  const [first, second, ...rest] = coefficients;
  let value = add(mul(x, first!), second!);
  for (const coefficient of rest) value = add(mul(value, x), coefficient);
  return value;
}
