/** Embeddings of positions: learned rows, or fixed sines and cosines. */
import { lastElement } from "../../../core/collections.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { ne } from "../../../ops/elementwise/comparison.ts";
import { embedding } from "../../../ops/embedding/embedding.ts";
import { cumsum } from "../../../ops/scan/cumsum.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Embedding } from "../../layers/embedding.ts";
import type { PositionsDescription, SinusoidsDescription } from "./description.ts";

/**
 * @internal Returns the embeddings of the positions of tokens: [tokens, width], or [batch, tokens, width] if they
 * depend on which tokens are padding.
 *
 * @param table the learned rows; null for sines and cosines
 * @param start the number of tokens before the first one
 */
export function positionRows(
  table: Embedding | null,
  description: PositionsDescription,
  tokens: Tensor,
  { dtype, shape }: Pick<Tensor, "dtype" | "shape">,
  start = 0,
): Tensor {
  const { padding, first = 0, sinusoids } = description;
  const [count, width] = [tokens.shape[1], lastElement(shape)];
  if (padding === undefined) {
    const from = first + start;
    return table ? table.rowsFrom(from, count) : toDType(sinusoidRows(sinusoids!, from, count, width), dtype);
  }
  // padding + the number of tokens so far that are not padding; `padding` for tokens that are
  const isText = toDType(ne(tokens, padding), "int32");
  const counted = cumsum(isText, { dim: 1, dtype: "int32" });
  const positions = add(mul(start === 0 ? counted : add(counted, start), isText), padding);
  if (table) return table.forward(positions);
  const rows = sinusoidRows(sinusoids!, 0, padding + start + count + 1, width, padding);
  return toDType(embedding(positions, rows), dtype);
}

/** Returns rows of sines and cosines, float32 [count, width]. The row of padding is 0. */
function sinusoidRows(
  { steps, rounded }: SinusoidsDescription,
  first: number,
  count: number,
  width: number,
  padding?: number,
): Tensor {
  const half = width / 2;
  const values = new Float32Array(count * width);
  const round = rounded ? Math.fround : (x: number) => x;
  const rate = Math.log(10_000) / steps;
  const frequencies = Array.from({ length: half }, (_, index) => round(Math.exp(round(-index * round(rate)))));
  for (let row = 0; row < count; row++) {
    if (first + row === padding) continue;
    for (const [index, frequency] of frequencies.entries()) {
      const angle = round((first + row) * frequency);
      values[row * width + index] = Math.sin(angle);
      values[row * width + half + index] = Math.cos(angle);
    }
  }
  return tensor(values, { shape: [count, width] });
}
