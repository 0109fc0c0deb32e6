import { mul, sign } from "./arithmetic.ts";
import { defineBinary } from "./define.ts";
import { zerosLike } from "./operands.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * |a| with the sign of b for each pair of elements, broadcast; zeros and NaN have signs too. Integers become float32.
 * @see {@link add}
 *
 * The gradient of a is 1 where the sign stays, −1 where it changes and 0 where a is 0; that of b is 0.
 *
 * @example
 * copysign(tensor([1, -2]), -0); // float32 [-1, -2]
 */
export const copysign: BinaryOperation = defineBinary("copysign", {
  takes: "floats",
  saves: "operands",
  reference: { float: withSign },
  gradient: (g, a, b, needs) => [
    needs[0] ? mul(g, mul(copysign(1, b), sign(a))) : null,
    needs[1] ? zerosLike(g) : null,
  ],
});

const buffer = new DataView(new ArrayBuffer(8));

/** The sign of a NaN is a bit that arithmetic does not show. */
function withSign(a: number, b: number): number {
  buffer.setFloat64(0, b);
  return buffer.getInt8(0) < 0 ? -Math.abs(a) : Math.abs(a);
}
