/**
 * Resizing of uint8 images: weights are 16-bit integers, and results are rounded to bytes after each axis, the last
 * axis first, as in PyTorch and Pillow. Every backend therefore gives the same bytes as PyTorch.
 */
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { bitwiseRightShift } from "../elementwise/bitwise.ts";
import { clamp } from "../elementwise/clamp.ts";
import { indexSelectAlong } from "../indexing/adjoint.ts";
import type { Taps } from "./taps.ts";

/**
 * @internal Resizes x, of dtype uint8, along one axis.
 *
 * @param fixed the number of fractional bits of weights. Default: PyTorch's
 */
export function resampledBytes(x: Tensor, axis: number, taps: Taps, fixed?: number): Tensor {
  const { places, weights, bits } = wholeWeights(taps, fixed);
  const along = x.shape.map((_, at) => (at === axis ? places[0].length : 1));
  const terms = places.map((indices, tap) => {
    const taken = toDType(indexSelectAlong(x, tensor(indices), axis, "interpolate"), "int32");
    return mul(taken, tensor(weights[tap], { shape: along }));
  });
  const half = 2 ** (bits - 1);
  const total = terms.reduce((sum, term) => add(sum, term));
  const rounded = bitwiseRightShift(add(total, half), bits);
  return toDType(clamp(rounded, 0, 255), "uint8");
}

interface WholeTaps {
  readonly places: readonly BigInt64Array[];
  /** The weights times 2^bits, as integers. */
  readonly weights: readonly Int32Array[];
  readonly bits: number;
}

/**
 * Converts weights to integers with as many fractional bits as fit below 2¹⁵ for the largest weight. At most 22 bits:
 * with more, a sum of bytes could overflow int32.
 */
function wholeWeights({ places, weights }: Taps, fixed: number | undefined): WholeTaps {
  const merged = mergedWeights(places, weights!);
  const largest = Math.max(0, ...merged.map((each) => each.reduce((most, weight) => Math.max(most, weight), 0)));
  let bits = fixed ?? 0;
  while (fixed === undefined && bits < 22 && Math.floor(0.5 + largest * 2 ** (bits + 1)) < 2 ** 15) bits++;
  const whole = (weight: number): number => wholeWeight(weight, bits);
  return { places, weights: merged.map((each) => Int32Array.from(each, whole)), bits };
}

/** @internal Returns a weight times 2^bits, rounded to the nearest integer. */
export const wholeWeight = (weight: number, bits: number): number =>
  Math.sign(weight) * Math.floor(Math.abs(weight) * 2 ** bits + 0.5);

/**
 * Merges the weights of taps that read the same element, which happens at borders: the sum is rounded, not each weight.
 */
function mergedWeights(places: readonly BigInt64Array[], weights: readonly Float64Array[]): Float64Array[] {
  const merged = weights.map((each) => each.slice());
  for (let at = 0; at < places[0].length; at++)
    for (let tap = 1; tap < places.length; tap++) {
      const first = places.findIndex((each) => each[at] === places[tap][at]);
      if (first === tap) continue;
      merged[first][at] += merged[tap][at];
      merged[tap][at] = 0;
    }
  return merged;
}
