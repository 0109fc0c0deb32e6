/** How weights start. */
import { empty, ones, zeros } from "../ops/creation/full.ts";
import { uniform } from "../ops/random/rand.ts";
import { normal } from "../ops/random/randn.ts";
import type { Generator } from "../random/generator.ts";
import type { FloatDType } from "../tensor/dtype.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** What every layer takes. */
export interface LayerOptions {
  /** Of the parameters. Default float32. */
  dtype?: FloatDType | undefined;
  /** Where the weights' random numbers come from: the same seed, the same weights. Default: the one that `manualSeed` seeds. */
  generator?: Generator | undefined;
  /** How the weights start. Default {@link pytorchInitialization}. */
  initialization?: Initialization | undefined;
}

/** @internal Those alone, for the parts of a layer. */
export const layerOptions = ({ dtype, generator, initialization }: LayerOptions): LayerOptions => ({
  ...{ dtype, generator, initialization },
});

/** Draws one parameter of a shape. */
export type Initializer = (shape: Shape, options: Pick<LayerOptions, "dtype" | "generator">) => Tensor;

/** How the parameters of a model start, by what they do. */
export interface Initialization {
  /** Weights [outputs, inputs] of linear layers. */
  readonly weight: Initializer;
  /** Those of linear layers whose result is added to the residual stream. */
  readonly residual: Initializer;
  /** The biases of linear layers, given the number of inputs. */
  readonly bias: (inputs: number) => Initializer;
  /** Tables [rows, width] of embeddings. */
  readonly embedding: Initializer;
}

/** Every number is drawn from a normal distribution of mean 0. */
export const normalOf =
  (deviation: number): Initializer =>
  (shape, { dtype = "float32", generator }) =>
    normal(0, deviation, shape, { dtype, generator });

const uniformWithin =
  (bound: number): Initializer =>
  (shape, { dtype = "float32", generator }) =>
    uniform(-bound, bound, shape, { dtype, generator });

/** 1 / √inputs of a weight [outputs, inputs], which is its last axis. */
const byInputs: Initializer = (shape, options) => uniformWithin(1 / Math.sqrt(shape.at(-1)!))(shape, options);

const zero: Initializer = (shape, { dtype = "float32" }) => zeros(shape, { dtype });

/** @internal */
export const one: Initializer = (shape, { dtype = "float32" }) => ones(shape, { dtype });

/**
 * As PyTorch's layers: weights and biases of linear layers uniform in ±1 / √inputs, embeddings normal with a deviation of 1.
 *
 * Source: `torch.nn.Linear.reset_parameters`, whose `kaiming_uniform_(a=√5)` comes to that bound.
 */
export const pytorchInitialization: Initialization = {
  weight: byInputs,
  residual: byInputs,
  bias: (inputs) => uniformWithin(1 / Math.sqrt(inputs)),
  embedding: normalOf(1),
};

/**
 * As GPT-2: everything normal, and what is added to the residual stream smaller by 1 / √(2 · layers), as each layer adds to it twice.
 * Biases are 0.
 *
 * @param deviation of weights and embeddings; GPT-2's, and Llama's, is 0.02
 *
 * Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.3.
 */
export const gpt2Initialization = (layers: number, deviation = 0.02): Initialization => ({
  weight: normalOf(deviation),
  residual: normalOf(deviation / Math.sqrt(2 * layers)),
  bias: () => zero,
  embedding: normalOf(deviation),
});

/** As Llama: everything normal of one deviation, biases 0. */
export const llamaInitialization = (deviation = 0.02): Initialization => ({
  weight: normalOf(deviation),
  residual: normalOf(deviation),
  bias: () => zero,
  embedding: normalOf(deviation),
});

const undrawn: Initializer = (shape, { dtype = "float32" }) => empty(shape, { dtype });

/** Undefined contents: for a model whose weights are all loaded next. */
export const noInitialization: Initialization = {
  weight: undrawn,
  residual: undrawn,
  bias: () => undrawn,
  embedding: undrawn,
};

/** @internal A parameter as an initializer draws it. */
export function parameter(shape: Shape, initialize: Initializer, { dtype, generator }: LayerOptions): Tensor {
  const made = initialize(shape, { dtype, generator });
  made.requiresGrad = true;
  return made;
}

/** @internal One that starts with zeros. */
export const zeroParameter = (shape: Shape, options: LayerOptions): Tensor => parameter(shape, zero, options);
/** @internal One that starts with ones. */
export const oneParameter = (shape: Shape, options: LayerOptions): Tensor => parameter(shape, one, options);
