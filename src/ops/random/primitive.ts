/** The primitives of random numbers: `random`, `bernoulli`, `multinomial` and `randperm`. */
import type { ExampleStarts } from "../../backend/batching/random.ts";
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, real, whole, wideWord, word } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";
import { ROUNDS } from "../../random/permutation.ts";
import type { PhiloxCounter, PhiloxKey } from "../../random/philox.ts";
import type { DType } from "../../tensor/dtype.ts";

/** The start of a call's random numbers in the generator's sequence. */
export interface RandomStart {
  readonly key: PhiloxKey;
  readonly counter: PhiloxCounter;
  /** The starts of the examples of `vmap`, if they draw different numbers. */
  readonly perExample?: ExampleStarts;
}

const startFields = { key: array(word, 2), counter: array(word, 4) };

const distributions = enumeration("Distribution", ["bits", "uniform", "normal", "integers"]);

/**
 * A distribution: raw words; uniform floats in [low, high); normal floats; the integers least … least + choices − 1.
 */
export type Distribution = { readonly kind: NameOf<typeof distributions> } & (
  | { readonly kind: "bits" }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "normal"; readonly mean: number; readonly deviation: number }
  | { readonly kind: "integers"; readonly least: bigint; readonly choices: bigint }
);

export interface DistributionAttributes extends RandomStart {
  readonly distribution: Distribution;
  /** The dtype of the result. */
  readonly dtype: DType;
}

/** Parameters that a distribution does not use are 0. `scale` is high − low. */
const distributionFields = {
  ...startFields,
  count: whole,
  low: real,
  scale: real,
  high: real,
  mean: real,
  deviation: real,
  least: wideWord,
  choices: wideWord,
};

/** Returns the kernel parameters to draw `count` numbers. */
export function drawOf({ key, counter, distribution: drawn }: DistributionAttributes, count: number) {
  const isUniform = drawn.kind === "uniform";
  const isNormal = drawn.kind === "normal";
  const isInteger = drawn.kind === "integers";
  return {
    key,
    counter,
    count,
    low: isUniform ? drawn.low : 0,
    scale: isUniform ? drawn.high - drawn.low : 0,
    high: isUniform ? drawn.high : 0,
    mean: isNormal ? drawn.mean : 0,
    deviation: isNormal ? drawn.deviation : 0,
    least: isInteger ? drawn.least : 0n,
    choices: isInteger ? drawn.choices : 0n,
  };
}

export const distributionParameters = struct("Draw", distributionFields);
export const randomCall = cpuCall(
  "random",
  { distribution: oneOf(distributions), dtype, offset: whole, ...distributionFields },
  ["output"],
);

export const bernoulliParameters = struct("Bernoulli", { loop: loopNest, ...startFields });
export const bernoulliCall = cpuCall(
  "bernoulli",
  { pDtype: dtype, dtype, pOffset: whole, offset: whole, ...startFields, nest: nest(1) },
  ["p", "output"],
);

/**
 * Attributes of `multinomial`, which samples categories from rows of weights by a race: category c arrives at time E(c)
 * / weight(c), with independent exponential numbers E(c). With replacement, each sample is the first arrival of a
 * separate race. Without, the samples are the first arrivals of one race, in order (Efraimidis and Spirakis, "Weighted
 * random sampling with a reservoir", 2006). The counter of E is (⌊c / 4⌋, sample, row, 0).
 */
export interface MultinomialAttributes extends RandomStart {
  readonly samples: number;
  readonly replacement: boolean;
}

const multinomialFields = {
  ...startFields,
  categories: word,
  samples: word,
  replacement: flag,
  rowStride: whole,
  stride: whole,
};

export const multinomialParameters = struct("Multinomial", {
  ...multinomialFields,
  start: whole,
});
export const multinomialCall = cpuCall(
  "multinomial",
  { dtype, weightsOffset: whole, offset: whole, rows: whole, ...multinomialFields },
  ["weights", "output"],
);

const permutationFields = {
  count: whole,
  leftBits: word,
  rightBits: word,
  swaps: flag,
  keys: array(word, ROUNDS),
};

export const permutationParameters = struct("Permutation", permutationFields);
export const permutationCall = cpuCall("permutation", { dtype, offset: whole, ...permutationFields }, ["output"]);
