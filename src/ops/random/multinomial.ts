import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { flag, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters, required } from "../../core/parameters.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkFloat } from "../creation/create.ts";
import { reshape } from "../view/reshape.ts";
import { aGenerator, type GeneratorOptions, nextStart } from "./distribution.ts";
import { multinomialCpu } from "./multinomial.cpu.ts";
import { multinomialMetal } from "./multinomial.metal.ts";
import { multinomialReference } from "./multinomial.reference.ts";
import type { MultinomialAttributes } from "./primitive.ts";

const multinomialPrimitive = definePrimitive<MultinomialAttributes>({
  name: "multinomial",
  family: "random",
  implementations: { metal: multinomialMetal, cpu: multinomialCpu, reference: multinomialReference },
});

/** Options of {@link multinomial}. */
export interface MultinomialOptions extends GeneratorOptions {
  /** Whether a category can be chosen more than once. Default false. */
  replacement?: boolean | undefined;
}

/**
 * Draws indices of categories with probabilities proportional to their weights. It costs one random number per weight,
 * or with replacement one per weight and sample.
 *
 * @param weights float[categories] or float[rows, categories], finite and not negative; they need not add up to 1
 * @param numSamples the number of samples from each row; without replacement at most the number of weights above 0
 * @returns int64[numSamples] or int64[rows, numSamples]. On metal, values are not checked: an invalid weight is
 * ignored, and the index is −1 if nothing is left to choose.
 *
 * @example
 * multinomial(tensor([0.1, 0.7, 0.2]), 1); // mostly [1]
 *
 * @throws {ShapeError} for weights of an unsupported rank, or without categories.
 * @throws {DTypeError} for weights that are not floats.
 * @throws {ArgumentError} for an impossible number of samples; on cpu and reference also for a weight that is negative
 * or not finite, or too few weights above 0.
 */
export function multinomial(
  weights: Tensor,
  numSamples: number,
  ...options: Given<MultinomialOptions, ["replacement"]>
): Tensor<"int64">;
export function multinomial(...values: unknown[]): Tensor<"int64"> {
  const { weights, numSamples, replacement, generator } = multinomialParameters(values);
  checkFloat("multinomial", weights.dtype);
  const categories = weights.shape.at(-1) ?? 0;
  if (weights.rank < 1 || weights.rank > 2 || categories === 0 || categories >= MOST)
    throw new ShapeError(
      "multinomial",
      "invalidShape",
      `expected [categories] or [rows, categories], with 1 to ${MOST - 1} categories, got ${weights.describe()}`,
    );
  checkSamples(numSamples, replacement ? MOST - 1 : categories);
  const rows = weights.rank === 1 ? reshape(weights, [1, categories]) : weights;
  const attributes = { ...nextStart({ generator }), samples: numSamples, replacement };
  const result = execute(multinomialPrimitive, [rows], [rows.shape[0], numSamples], "int64", attributes);
  return weights.rank === 1 ? reshape(result, [numSamples]) : result;
}
multinomial.method = "int64" as const;
const multinomialParameters = parameters("multinomial", {
  weights: operand(aTensor),
  numSamples: required(someNumber),
  replacement: optional(flag, false),
  generator: named(aGenerator),
});

/** Categories and samples are counted in 32 bits. */
const MOST = 2 ** 31;

function checkSamples(numSamples: number, most: number): void {
  if (Number.isInteger(numSamples) && numSamples >= 1 && numSamples <= most) return;
  throw new ArgumentError(
    "multinomial",
    "invalidSamples",
    `expected numSamples to be a whole number from 1 to ${most}, got ${String(numSamples)}; { replacement: true } ` +
      "allows more samples than categories",
  );
}
