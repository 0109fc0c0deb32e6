/** Initializers whose scale depends on the number of inputs and outputs of a layer. */
import { noGrad } from "../../autograd/modes.ts";
import { ShapeError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { randomRows } from "../../ops/inplace/random.ts";
import { aGenerator, type GeneratorOptions } from "../../ops/random/distribution.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { finite } from "./fills.ts";
import { aNonlinearity, type GainNonlinearity, gainOf } from "./gain.ts";

/** Options of {@link kaimingUniform_} and {@link kaimingNormal_}. */
export interface KaimingOptions extends GeneratorOptions {
  /** The slope of leaky ReLU. Default 0, which is ReLU. */
  a?: number | undefined;
  /** `fanIn` (default) keeps the variance in the forward pass, `fanOut` in the backward pass. */
  mode?: "fanIn" | "fanOut" | undefined;
  /** The function after the layer. Default `leakyRelu`. */
  nonlinearity?: GainNonlinearity | undefined;
}

/** Options of Xavier initializers. */
type XavierArguments = Given<GeneratorOptions & { gain?: number | undefined }, ["gain"]>;

/** Inputs and outputs of a weight [outputs, inputs, …kernel], times the size of the kernel. */
function fansOf(operation: string, x: Tensor): { fanIn: number; fanOut: number } {
  if (x.rank < 2)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected a weight [outputs, inputs, …], got ${x.describe()}; initialize it with uniform_ or normal_`,
    );
  const [outputs, inputs, ...kernel] = x.shape;
  const field = kernel.reduce((product, size) => product * size, 1);
  return { fanIn: inputs * field, fanOut: outputs * field };
}

const x = operand(aTensor);
const generated = { generator: named(aGenerator) } as const;
const xavier = { x, gain: optional(finite, 1), ...generated } as const;
const kaiming = {
  x,
  a: optional(finite, 0),
  mode: optional(choice("fanIn", "fanOut"), "fanIn"),
  nonlinearity: optional(aNonlinearity, "leakyRelu"),
  ...generated,
} as const;

/** Fills with uniform numbers in ±√3 · deviation, which have this standard deviation. */
function fillUniformly(x: Tensor, std: number, { generator }: GeneratorOptions): Tensor {
  const bound = Math.sqrt(3) * Math.abs(std);
  return noGrad(() => randomRows.uniform_(x, -bound, bound, { generator }));
}

const fillNormally = (x: Tensor, std: number, { generator }: GeneratorOptions): Tensor =>
  noGrad(() => randomRows.normal_(x, 0, Math.abs(std), { generator }));

/** The standard deviation of Xavier: gain · √(2 / (fanIn + fanOut)). */
function xavierDeviation(operation: string, { x, gain }: { x: Tensor; gain: number }): number {
  const { fanIn, fanOut } = fansOf(operation, x);
  return gain * Math.sqrt(2 / (fanIn + fanOut));
}

/** The standard deviation of Kaiming: gain / √fan. */
function kaimingDeviation(operation: string, x: Tensor, options: Required<Omit<KaimingOptions, "generator">>): number {
  const fans = fansOf(operation, x);
  return gainOf(options.nonlinearity!, options.a!) / Math.sqrt(fans[options.mode!]);
}

/**
 * Fills a weight with uniform numbers within ±gain · √(6 / (fanIn + fanOut)). Returns the tensor.
 *
 * Source: X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
 *
 * @param tensor of shape [outputs, inputs, …kernel]
 *
 * @example
 * nn.init.xavierUniform_(layer.weight, nn.init.calculateGain("tanh"));
 *
 * @throws {ShapeError} for fewer than two axes. @throws {DTypeError} for integers and bools.
 */
export function xavierUniform_<T extends Tensor>(tensor: T, ...options: XavierArguments): T;
export function xavierUniform_(...values: unknown[]): Tensor {
  const given = xavierUniformParameters(values);
  return fillUniformly(given.x, xavierDeviation("init.xavierUniform_", given), given);
}
const xavierUniformParameters = parameters("init.xavierUniform_", xavier);

/** Fills a weight with normal numbers of deviation gain · √(2 / (fanIn + fanOut)). @see {@link xavierUniform_} */
export function xavierNormal_<T extends Tensor>(tensor: T, ...options: XavierArguments): T;
export function xavierNormal_(...values: unknown[]): Tensor {
  const given = xavierNormalParameters(values);
  return fillNormally(given.x, xavierDeviation("init.xavierNormal_", given), given);
}
const xavierNormalParameters = parameters("init.xavierNormal_", xavier);

/**
 * Fills a weight with uniform numbers within ±gain · √(3 / fan). Returns the tensor.
 *
 * Source: K. He et al., "Delving deep into rectifiers", 2015.
 *
 * @param tensor of shape [outputs, inputs, …kernel]
 *
 * @example
 * nn.init.kaimingUniform_(layer.weight, { nonlinearity: "relu" });
 *
 * @throws {ShapeError} for fewer than two axes. @throws {DTypeError} for integers and bools.
 */
export function kaimingUniform_<T extends Tensor>(
  tensor: T,
  ...options: Given<KaimingOptions, ["a", "mode", "nonlinearity"]>
): T;
export function kaimingUniform_(...values: unknown[]): Tensor {
  const { x, ...options } = kaimingUniformParameters(values);
  return fillUniformly(x, kaimingDeviation("init.kaimingUniform_", x, options), options);
}
const kaimingUniformParameters = parameters("init.kaimingUniform_", kaiming);

/** Fills a weight with normal numbers of deviation gain / √fan. Returns the tensor. @see {@link kaimingUniform_} */
export function kaimingNormal_<T extends Tensor>(
  tensor: T,
  ...options: Given<KaimingOptions, ["a", "mode", "nonlinearity"]>
): T;
export function kaimingNormal_(...values: unknown[]): Tensor {
  const { x, ...options } = kaimingNormalParameters(values);
  return fillNormally(x, kaimingDeviation("init.kaimingNormal_", x, options), options);
}
const kaimingNormalParameters = parameters("init.kaimingNormal_", kaiming);
