/** Scales the queries of long texts by their positions. */
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { log } from "../../../ops/elementwise/logarithm.ts";
import { floor } from "../../../ops/elementwise/rounding.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Positions } from "../../cache/cache.ts";
import type { TemperatureDescription } from "./description.ts";

/**
 * Multiplies queries by 1 + beta · ln(1 + ⌊(position + offset) / length⌋).
 *
 * @param queries [batch, heads, tokens, headWidth]
 * @param positions the position of the first token, or one for each token, [batch, tokens]
 */
export function scaledByPosition(
  queries: Tensor,
  temperature: TemperatureDescription | undefined,
  positions: Positions,
): Tensor {
  if (temperature === undefined) return queries;
  const { beta, length, offset = 0 } = temperature;
  const count = queries.shape[2];
  if (typeof positions !== "number") {
    const steps = floor(div(add(toDType(positions, "float32"), offset), length));
    const factors = add(mul(log(add(steps, 1)), beta), 1);
    return mul(queries, toDType(reshape(factors, [queries.shape[0], 1, count, 1]), queries.dtype));
  }
  if (positions + count + offset <= length) return queries;
  const factors = Array.from(
    { length: count },
    (_, at) => 1 + beta * Math.log(1 + Math.floor((positions + at + offset) / length)),
  );
  return mul(queries, tensor(factors, { shape: [count, 1], dtype: queries.dtype }));
}
