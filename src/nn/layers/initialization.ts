/** Weight initialization. */
import { lastElement } from "../../core/collections.ts";
import { aNumber } from "../../core/kinds.ts";
import { count, notNegative } from "../../core/options.ts";
import { operand, optionalOperand, parameters } from "../../core/parameters.ts";
import { empty, ones, zeros } from "../../ops/creation/full.ts";
import { uniform } from "../../ops/random/rand.ts";
import { normal } from "../../ops/random/randn.ts";
import type { Generator } from "../../random/generator.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Options common to all layers. */
export interface LayerOptions<D extends FloatDType = FloatDType> {
  /** The dtype of the parameters. Default float32. */
  dtype?: D | undefined;
  /** The random number generator for the initial weights. Default: the global one, which `manualSeed` seeds. */
  generator?: Generator | undefined;
  /** How the weights are initialized. Default {@link pytorchInitialization}. */
  initialization?: Initialization | undefined;
}

/** @internal Picks these options for the submodules of a layer. */
export const layerOptions = ({ dtype, generator, initialization }: LayerOptions): LayerOptions => ({
  dtype,
  generator,
  initialization,
});

/** Makes the initial values of one parameter. */
export type Initializer = (shape: Shape, options: Pick<LayerOptions, "dtype" | "generator">) => Tensor;

/** The initializers of a model's parameters, by kind. */
export interface Initialization {
  /** Weights [outputs, inputs] of linear layers. */
  readonly weight: Initializer;
  /** Weights of linear layers whose output is added to the residual stream. */
  readonly residual: Initializer;
  /** Biases of linear layers with `inputs` inputs. */
  readonly bias: (inputs: number) => Initializer;
  /** Weights [rows, width] of embeddings. */
  readonly embedding: Initializer;
}

/**
 * Returns an initializer: normal with mean 0 and this standard deviation.
 *
 * @example
 * const initialization = { ...pytorchInitialization, embedding: normalOf(0.02) };
 * new Embedding(10, 4, { initialization });
 */
export function normalOf(deviation: number): Initializer;
export function normalOf(...values: unknown[]): Initializer {
  return normalWith(normalParameters(values).deviation);
}

const normalWith =
  (deviation: number): Initializer =>
  (shape, { dtype = "float32", generator }) =>
    normal(0, deviation, shape, { dtype, generator });

const standardDeviation = aNumber(notNegative);
const normalParameters = parameters("normalOf", { deviation: operand(standardDeviation) });
const gpt2Parameters = parameters("gpt2Initialization", {
  layers: operand(aNumber(count)),
  deviation: optionalOperand(standardDeviation),
});
const llamaParameters = parameters("llamaInitialization", { deviation: optionalOperand(standardDeviation) });

const uniformWithin =
  (bound: number): Initializer =>
  (shape, { dtype = "float32", generator }) =>
    uniform(-bound, bound, shape, { dtype, generator });

/** Uniform in ±1 / √inputs for a weight [outputs, inputs]. */
const uniformByInputs: Initializer = (shape, options) =>
  uniformWithin(1 / Math.sqrt(lastElement(shape)))(shape, options);

/**
 * @internal Initializes uniformly in ±√(6 / (inputs + outputs)) for a weight [outputs, inputs]: X. Glorot and Y.
 * Bengio, 2010.
 */
export const xavierUniform: Initializer = (shape, options) =>
  uniformWithin(Math.sqrt(6 / (lastElement(shape) + shape.at(-2)!)))(shape, options);

/**
 * @internal Initializes with normal numbers of the variance of {@link xavierUniform}. Axes after the first two are the
 * kernel of a convolution.
 */
export const xavierNormal: Initializer = (shape, options) => {
  const [outputs, inputs, ...kernel] = shape as [number, number, ...number[]];
  const field = kernel.reduce((product, size) => product * size, 1);
  return normalWith(Math.sqrt(2 / ((outputs + inputs) * field)))(shape, options);
};

/** @internal Initializes with zeros. */
export const zero: Initializer = (shape, { dtype = "float32" }) => zeros(shape, { dtype });

/** @internal Initializes with ones. */
export const one: Initializer = (shape, { dtype = "float32" }) => ones(shape, { dtype });

/**
 * PyTorch's defaults: weights and biases of linear layers are uniform in ±1 / √inputs, embeddings are normal with a
 * standard deviation of 1.
 *
 * Source: `torch.nn.Linear.reset_parameters`, whose `kaiming_uniform_(a=√5)` equals that bound.
 */
export const pytorchInitialization: Initialization = {
  weight: uniformByInputs,
  residual: uniformByInputs,
  bias: (inputs) => uniformWithin(1 / Math.sqrt(inputs)),
  embedding: normalWith(1),
};

/**
 * Returns GPT-2's initialization: normal, with projections into the residual stream scaled by 1 / √(2 · layers),
 * because each layer adds to the stream twice. Biases are 0.
 *
 * @param deviation the standard deviation of weights and embeddings; 0.02 in GPT-2
 *
 * @example
 * new TransformerBlock({ width: 64, heads: 4, initialization: gpt2Initialization(12) });
 *
 * Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.3.
 */
export function gpt2Initialization(layers: number, deviation?: number): Initialization;
export function gpt2Initialization(...values: unknown[]): Initialization {
  const { layers, deviation = 0.02 } = gpt2Parameters(values);
  return {
    weight: normalWith(deviation),
    residual: normalWith(deviation / Math.sqrt(2 * layers)),
    bias: () => zero,
    embedding: normalWith(deviation),
  };
}

/**
 * Returns Llama's initialization: normal with one standard deviation, by default 0.02. Biases are 0.
 *
 * @example
 * new Linear(8, 8, { initialization: llamaInitialization(0.01) });
 */
export function llamaInitialization(deviation?: number): Initialization;
export function llamaInitialization(...values: unknown[]): Initialization {
  const { deviation = 0.02 } = llamaParameters(values);
  const weight = normalWith(deviation);
  return { weight, residual: weight, bias: () => zero, embedding: weight };
}

const uninitialized: Initializer = (shape, { dtype = "float32" }) => empty(shape, { dtype });

/** Leaves weights uninitialized, for a model whose weights are all loaded afterwards. */
export const noInitialization: Initialization = {
  weight: uninitialized,
  residual: uninitialized,
  bias: () => uninitialized,
  embedding: uninitialized,
};

/** @internal Makes a parameter with an initializer's values. */
export function parameter<D extends FloatDType>(
  shape: Shape,
  initialize: Initializer,
  { dtype, generator }: LayerOptions<D>,
): Tensor<D> {
  const values = initialize(shape, { dtype, generator });
  values.requiresGrad = true;
  return values as Tensor<D>;
}

/** @internal Makes a parameter of zeros. */
export const zeroParameter = <D extends FloatDType>(shape: Shape, options: LayerOptions<D>): Tensor<D> =>
  parameter(shape, zero, options);
/** @internal Makes a parameter of ones. */
export const oneParameter = <D extends FloatDType>(shape: Shape, options: LayerOptions<D>): Tensor<D> =>
  parameter(shape, one, options);
