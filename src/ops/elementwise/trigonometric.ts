import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, neg, square, sub } from "./arithmetic.ts";
import { eq } from "./comparison.ts";
import { defineBinary, defineUnary } from "./define.ts";
import { div } from "./division.ts";
import type { BinaryOperation, FloatOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * Computes the sine of each element, in radians. @see {@link exp}
 *
 * @example
 * sin(tensor([0, 1])); // float32 [0, 0.84147]
 */
export const sin: FloatOperation = defineUnary("sin", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.sin },
  gradient: (g, x) => mul(g, cos(x)),
});

/**
 * Computes the cosine of each element, in radians. @see {@link exp}
 *
 * @example
 * cos(tensor([0, 1])); // float32 [1, 0.5403]
 */
export const cos: FloatOperation = defineUnary("cos", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.cos },
  gradient: (g, x) => mul(neg(g), sin(x)),
});

/**
 * Computes the tangent of each element, in radians. @see {@link exp}
 *
 * @example
 * tan(tensor([0, 1])); // float32 [0, 1.55741]
 */
export const tan: FloatOperation = defineUnary("tan", {
  takes: "floats",
  saves: "output",
  reference: { float: Math.tan },
  gradient: (g, y) => mul(g, sub(square(y), -1)),
});

/**
 * Computes the angle of each point (b, a) in radians, from −π to π, with broadcasting. Integers become float32. @see
 * {@link add}
 *
 * @example
 * atan2(tensor([0, 1]), tensor([-1, 0])); // float32 [3.14159, 1.5708]
 */
export const atan2: BinaryOperation = defineBinary("atan2", {
  takes: "floats",
  saves: "operands",
  reference: { float: Math.atan2 },
  gradient: gradientOfAngle,
});

/**
 * Computes the derivatives b/(a² + b²) and −a/(a² + b²), 0 at the origin; in float32 for 16-bit floats, since 256²
 * overflows float16.
 */
function gradientOfAngle(g: Tensor, a: Tensor, b: Tensor, needs: readonly boolean[]): readonly (Tensor | null)[] {
  const dtype = accumulationDType(g.dtype);
  const squares = add(square(toDType(a, dtype)), square(toDType(b, dtype)));
  const scaled = div(g, where(eq(squares, 0), 1, squares));
  const part = (side: Tensor) => toDType(mul(scaled, side), g.dtype);
  return [needs[0] ? part(b) : null, needs[1] ? part(neg(a)) : null];
}
