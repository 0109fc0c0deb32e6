import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { ArgumentError } from "../../core/errors.ts";
import { tupleOf } from "../../core/tuples.ts";
import { exponential } from "../../random/normal.ts";
import { philox } from "../../random/philox.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { MultinomialAttributes } from "./primitive.ts";

export const multinomialReference: Implementation<MultinomialAttributes, [Tensor], [Tensor]> = {
  run({ inputs: [input], outputs: [output], attributes }) {
    const [rows, categories] = tupleOf(input.shape, 2);
    const { samples, replacement } = attributes;
    const weights = toNumbers(input);
    const round = input.dtype === "float64" ? Number : Math.fround;
    const chosen: number[] = [];
    for (let row = 0; row < rows; row++) {
      const rowWeights = weights.subarray(row * categories, (row + 1) * categories);
      const order = (sample: number) => arrivals(rowWeights, row, sample, attributes, round);
      if (replacement) for (let sample = 0; sample < samples; sample++) chosen.push(order(sample)[0] ?? missing());
      else for (const category of firsts(order(0), samples)) chosen.push(category);
    }
    store(output, chosen.map(BigInt));
  },
};

/** Returns the categories in the order of their arrival times. */
function arrivals(
  weights: Float64Array,
  row: number,
  sample: number,
  { key, counter }: MultinomialAttributes,
  round: (value: number) => number,
): number[] {
  const times = new Map<number, number>();
  for (const [category, weight] of weights.entries()) {
    if (!(weight >= 0 && weight < Number.POSITIVE_INFINITY))
      throw new ArgumentError("multinomial", "invalidArgument", `expected finite weights of at least 0, got ${weight}`);
    const words = philox([Math.floor(category / 4), sample, row, counter[3]], key);
    if (weight > 0) times.set(category, round(exponential(words[category % 4]) / weight));
  }
  return [...times.keys()].sort((a, b) => times.get(a)! - times.get(b)! || a - b);
}

function firsts(order: readonly number[], samples: number): readonly number[] {
  return order.length < samples ? missing() : order.slice(0, samples);
}

function missing(): never {
  throw new ArgumentError(
    "multinomial",
    "invalidArgument",
    "expected as many weights above 0 in a row as samples, got fewer",
  );
}
