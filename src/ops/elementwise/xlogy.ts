import { toDType } from "../copy/cast.ts";
import { mul } from "./arithmetic.ts";
import { ne } from "./comparison.ts";
import { defineBinary } from "./define.ts";
import { div } from "./division.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * a·ln b for each pair of elements, broadcast; 0 where a is 0, unless b is NaN; integers become float32. @see {@link add}
 *
 * @example
 * xlogy(tensor([0, 2]), tensor([0, 10])); // float32 [0, 4.60517]
 */
export const xlogy: BinaryOperation = defineBinary("xlogy", {
  takes: "floats",
  saves: "operands",
  reference: { float: (a, b) => (a === 0 && !Number.isNaN(b) ? 0 : a * Math.log(b)) },
  gradient: (g, a, b, needs) => [
    needs[0] ? mul(g, xlogy(toDType(ne(a, 0), a.dtype), b)) : null, // ln b, 0 where a is 0
    needs[1] ? mul(g, div(a, b)) : null,
  ],
});
