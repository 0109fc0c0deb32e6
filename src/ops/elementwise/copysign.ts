import { mul, sign } from "./arithmetic.ts";
import { defineBinary } from "./define.ts";
import { zerosLike } from "./operands.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * Computes |a| with the sign of b for each pair of elements, with broadcasting. Signs of zeros and NaN count too.
 * Integers become float32.
 * @see {@link add}
 *
 * The gradient of a is 1 if the sign is unchanged, −1 if it changes, and 0 if a is 0. The gradient of b is 0.
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

/** Reads the sign bit, since arithmetic does not show the sign of a NaN. */
function withSign(a: number, b: number): number {
  buffer.setFloat64(0, b);
  return buffer.getInt8(0) < 0 ? -Math.abs(a) : Math.abs(a);
}
