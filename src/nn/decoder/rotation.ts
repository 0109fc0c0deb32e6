/** Rotary position embeddings of a layer of a {@link Decoder}, some of which depend on the length of the text. */
import { type RopeOptions, rope } from "../../ops/position/rope.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Positions } from "../cache.ts";
import type { RopeDescription } from "./description.ts";

/** Rotates x [batch, heads, tokens, headWidth], queries or keys. `length`: of the text, these tokens included. */
export function rotate(
  x: Tensor,
  description: RopeDescription | undefined,
  positions: Positions,
  length: number,
): Tensor {
  if (description === undefined) return x;
  const where = typeof positions === "number" ? { offset: positions } : { positions };
  return rope(x, { ...optionsAt(description, x.shape.at(-1)!, length), ...where });
}

/** What `rope` takes for a text of this length. */
function optionsAt({ base, interleaved, dim, scaling }: RopeDescription, width: number, length: number): RopeOptions {
  const options = { base, interleaved, dim };
  switch (scaling?.type) {
    case "dynamic": {
      const { factor, originalContextLength: original } = scaling;
      const stretched = (factor * Math.max(length, original)) / original - (factor - 1);
      const rotated = dim ?? width;
      return { ...options, base: base * stretched ** (rotated / (rotated - 2)) };
    }
    case "longrope": {
      const { short, long, originalContextLength, attentionFactor } = scaling;
      const factors = length > originalContextLength ? long : short;
      return { ...options, scaling: { type: "factors", factors, attentionFactor } };
    }
    default:
      return { ...options, scaling };
  }
}

/** Whether rotations depend on the distances of tokens alone, not on how long the text is. */
export const isRelative = ({ scaling }: RopeDescription): boolean =>
  scaling?.type !== "dynamic" && scaling?.type !== "longrope";
