/** Rotary position embeddings in a {@link Decoder}. Some kinds depend on the length of the text. */

import { lastElement } from "../../../core/collections.ts";
import type { StepRotation } from "../../../ops/attention/step.ts";
import { cat } from "../../../ops/join/cat.ts";
import { rotationOf } from "../../../ops/position/frequencies.ts";
import { type RopeScaling, rope } from "../../../ops/position/rope.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Positions } from "../../cache/cache.ts";
import type { RopeDescription } from "./description.ts";

/**
 * Rotates queries or keys x [batch, heads, tokens, headWidth].
 *
 * @param lengths the length of each row's text including these tokens, or one length for all rows
 */
export function rotate(
  x: Tensor,
  description: RopeDescription | undefined,
  positions: Positions,
  lengths: readonly number[],
): Tensor {
  if (description === undefined) return x;
  if (!isRelative(description) && lengths.some((length) => length !== lengths[0]))
    return cat(
      lengths.map((length, row) => rotate(narrow(x, 0, row, 1), description, rowOf(positions, row), [length])),
      { dim: 0 },
    );
  const where = typeof positions === "number" ? { offset: positions } : { positions };
  return rope(x, { ...optionsAt(description, lastElement(x.shape), lengths[0]), ...where });
}

const rowOf = (positions: Positions, row: number): Positions =>
  typeof positions === "number" ? positions : narrow(positions, 0, row, 1);

/** Options of `rope` that do not depend on positions. */
interface FixedOptions {
  readonly base: number;
  readonly interleaved?: boolean | undefined;
  readonly dim?: number | undefined;
  readonly scaling?: RopeScaling | undefined;
}

/** Returns the options of `rope` for a text of this length. */
function optionsAt({ base, interleaved, dim, scaling }: RopeDescription, width: number, length: number): FixedOptions {
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

/** Returns a key that is equal for lengths with the same rotation. */
function stretchOf({ scaling }: RopeDescription, length: number): number {
  if (scaling?.type === "dynamic") return Math.max(length, scaling.originalContextLength);
  return scaling?.type === "longrope" && length > scaling.originalContextLength ? 1 : 0;
}

const noRotation: StepRotation = { cycles: new Float64Array(0), magnitude: 1, interleaved: false };

/** Returns the rotation that `rope` applies to rows of `width` elements, for any positions. */
function stepRotationOf({ base, interleaved = false, dim, scaling }: FixedOptions, width: number): StepRotation {
  const { frequencies, magnitude } = rotationOf(dim ?? width, base, scaling);
  const cycles = Float64Array.from(frequencies, (frequency) => frequency / (2 * Math.PI));
  return { cycles, magnitude, interleaved };
}

const rotations = new WeakMap<RopeDescription, { readonly stretch: number; readonly rotation: StepRotation }>();

/**
 * Returns the rotation of {@link rotate} for a fused decoding step; null if rows need different rotations. It is
 * cached, and computed again only if it depends on the length.
 */
export function stepRotation(
  description: RopeDescription | undefined,
  width: number,
  lengths: readonly number[],
): StepRotation | null {
  if (description === undefined) return noRotation;
  const [known, stretch] = [rotations.get(description), stretchOf(description, lengths[0])];
  if (lengths.some((length) => stretchOf(description, length) !== stretch)) return null;
  if (known?.stretch === stretch) return known.rotation;
  const rotation = stepRotationOf(optionsAt(description, width, lengths[0]), width);
  rotations.set(description, { stretch, rotation });
  return rotation;
}

/** Whether rotations depend only on distances between tokens, not on the length of the text. */
export const isRelative = ({ scaling }: RopeDescription): boolean =>
  scaling?.type !== "dynamic" && scaling?.type !== "longrope";
