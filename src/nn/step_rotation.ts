/** How a step of decoding rotates queries and keys: what `rope` does, with everything but the positions known. */
import type { StepRotation } from "../ops/attention/step.ts";
import { rotationOf } from "../ops/position/frequencies.ts";
import type { RopeOptions } from "../ops/position/rope.ts";

const noRotation: StepRotation = { cycles: new Float64Array(0), magnitude: 1, interleaved: false };

/** @internal Of rows of so many elements; undefined options: not at all. */
export function stepRotationOf(
  options: Pick<RopeOptions, "base" | "interleaved" | "dim" | "scaling"> | undefined,
  width: number,
): StepRotation {
  if (options === undefined) return noRotation;
  const { base = 10_000, interleaved = false, dim = width, scaling } = options;
  const { frequencies, magnitude } = rotationOf(dim, base, scaling);
  const cycles = Float64Array.from(frequencies, (frequency) => frequency / (2 * Math.PI));
  return { cycles, magnitude, interleaved };
}
