/** RNN, LSTM and GRU over sequences. */
import { ShapeError } from "../../../core/errors.ts";
import { aNumber, choice, flag } from "../../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../../core/parameters.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { dropout } from "../../../ops/activation/dropout.ts";
import { lowered } from "../../../ops/autocast/autocast.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { squeeze, unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { LayerOptions } from "../initialization.ts";
import { layerCount, layerParameters, probability, size } from "../kinds.ts";
import { Module } from "../module.ts";
import { checkInput, checkProjection, extentOf, readInputs, stateOrZeros } from "./inputs.ts";
import { runNetwork } from "./sequence.ts";
import { elmanRecurrences, gruRecurrence, lstmRecurrence, type Recurrence } from "./steps.ts";
import { addWeights, weightsOf } from "./weights.ts";

/** Options of {@link GRU}, {@link LSTM} and {@link RNN}, in PyTorch's order. */
export interface RecurrentOptions extends LayerOptions {
  /** Number of layers. Each gets the outputs of the one before. Default 1. */
  numLayers?: number | undefined;
  /** Whether the layers have biases. Default true. */
  bias?: boolean | undefined;
  /** Whether x is [batch, steps, inputs] instead of [steps, batch, inputs]. Default false. */
  batchFirst?: boolean | undefined;
  /** The dropout probability, in training, of the outputs of all layers but the last. Default 0. */
  dropout?: number | undefined;
  /**
   * Whether each layer also runs backward. Its outputs are concatenated after those of the forward direction. Default
   * false.
   */
  bidirectional?: boolean | undefined;
}

/** Options of {@link RNN}. */
export interface RNNOptions extends RecurrentOptions {
  /** The activation. Default `"tanh"`. */
  nonlinearity?: "tanh" | "relu" | undefined;
}

/** Options of {@link LSTM}. */
export interface LSTMOptions extends RecurrentOptions {
  /** The size that hidden states are projected to, below `hiddenSize`; 0 for no projection. Default 0. */
  projSize?: number | undefined;
}

/** Optional inputs of {@link RNN} and {@link GRU}. */
export interface RecurrentInputs {
  /** The initial hidden state, [layers · directions, batch, hiddenSize]. Default zeros. */
  readonly hidden?: Tensor | undefined;
  /**
   * The number of steps of each sequence, at least 1, in any order; later steps of x are padding. This replaces
   * PyTorch's packed sequences: outputs of padding are 0, and the final state of each sequence is the state of its last
   * step. Default: all steps.
   */
  readonly lengths?: readonly number[] | Tensor | undefined;
}

/** Optional inputs of {@link LSTM}. */
export interface LSTMInputs extends RecurrentInputs {
  /** The initial cell state, [layers · directions, batch, hiddenSize]. Default zeros. */
  readonly cell?: Tensor | undefined;
}

/** The result of {@link RNN} and {@link GRU}. */
export interface RecurrentResult {
  /**
   * The last layer's hidden state at each step, [steps, batch, directions · hiddenSize]; batch first with `batchFirst`.
   */
  readonly output: Tensor;
  /** The final hidden state of each layer and direction, [layers · directions, batch, hiddenSize]. */
  readonly hidden: Tensor;
}

/** The result of {@link LSTM}. */
export interface LSTMResult extends RecurrentResult {
  /** The final cell state of each layer and direction, [layers · directions, batch, hiddenSize]. */
  readonly cell: Tensor;
}

const leading = { inputSize: operand(size), hiddenSize: operand(size), numLayers: optional(layerCount, 1) } as const;
const trailing = {
  bias: optional(flag, true),
  batchFirst: optional(flag, false),
  dropout: optional(probability, 0),
  bidirectional: optional(flag, false),
} as const;
const notNegativeSize = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
});
type Sizes = ReturnType<typeof gruParameters>;

/** Base class of RNN, LSTM and GRU. */
abstract class Recurrent<Inputs extends LSTMInputs, Result> extends Module<[x: Tensor, inputs?: Inputs], Result> {
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly batchFirst: boolean;
  readonly dropout: number;
  readonly bidirectional: boolean;
  readonly projSize: number;
  readonly #recurrence: Recurrence;

  constructor(recurrence: Recurrence, widths: Sizes, projSize = 0) {
    super();
    const { inputSize, hiddenSize, numLayers, bias, batchFirst, dropout, bidirectional, ...options } = widths;
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.numLayers = numLayers;
    this.batchFirst = batchFirst;
    this.dropout = dropout;
    this.bidirectional = bidirectional;
    this.projSize = projSize;
    this.#recurrence = recurrence;
    const outputs = projSize || hiddenSize;
    for (let layer = 0; layer < numLayers; layer++) {
      const inputs = layer === 0 ? inputSize : this.suffixes(0).length * outputs;
      const sizes = { inputs, hidden: hiddenSize, rows: recurrence.gates * hiddenSize, outputs, bias };
      for (const suffix of this.suffixes(layer)) addWeights(this, suffix, sizes, options);
    }
  }

  /** Returns the suffixes of the names of a layer's weights, one per direction. */
  private suffixes(layer: number): string[] {
    return this.bidirectional ? [`_l${layer}`, `_l${layer}_reverse`] : [`_l${layer}`];
  }

  /** Runs the network over x. The states of the result have a batch axis if x has one. */
  protected run(
    input: Tensor,
    given: Inputs | undefined,
  ): { output: Tensor; hidden: Tensor; cell: Tensor | undefined } {
    const name = this.constructor.name;
    const weights = Array.from({ length: this.numLayers }, (_, layer) =>
      this.suffixes(layer).map((suffix) => lowered(weightsOf(this, suffix))),
    );
    const like = weights[0][0].inputWeight;
    const { x } = lowered({ x: input });
    checkInput(name, x, [2, 3], this.inputSize, like);
    const inputs = lowered(readInputs(name, given, this.#recurrence.hasCell));
    const isBatch = x.rank === 3;
    const steps: Tensor = !isBatch ? unsqueeze(x, 1) : this.batchFirst ? transpose(x, 0, 1) : x;
    const [length, batch] = tupleOf(steps.shape, 2);
    if (length === 0)
      throw new ShapeError(name, "wrongShape", `expected x to have at least one step, got ${x.describe()}`);
    const state = (kind: "hidden" | "cell", width: number): Tensor => {
      const count = weights.length * weights[0].length;
      const shape = isBatch ? [count, batch, width] : [count, width];
      const values = stateOrZeros(name, kind, inputs[kind], shape, like);
      return isBatch ? values : unsqueeze(values, 1);
    };
    const initial = {
      hidden: state("hidden", this.projSize || this.hiddenSize),
      cell: this.#recurrence.hasCell ? state("cell", this.hiddenSize) : undefined,
    };
    const extent = inputs.lengths === undefined ? undefined : extentOf(name, inputs.lengths, length, batch);
    const between = (output: Tensor) =>
      this.training && this.dropout > 0 ? dropout(output, { p: this.dropout }) : output;
    const network = { recurrence: this.#recurrence, weights, between };
    return tidy(() => {
      const { output, hidden, cell } = runNetwork(network, steps, initial, extent);
      if (!isBatch) return { output: squeeze(output, 1), hidden: squeeze(hidden, 1), cell: cell && squeeze(cell, 1) };
      return { output: this.batchFirst ? transpose(output, 0, 1) : output, hidden, cell };
    });
  }

  /** @internal */
  override details(): string {
    const { numLayers, batchFirst, dropout, bidirectional, projSize } = this;
    const others = Object.entries({ numLayers, batchFirst, dropout, bidirectional, projSize })
      .filter(([key, value]) => value !== (key === "numLayers" ? 1 : 0) && value !== false)
      .map(([key, value]) => `, ${key}: ${value}`);
    return `${this.inputSize}, ${this.hiddenSize}${others.join("")}`;
  }
}

const gruParameters = parameters("GRU", { ...leading, ...trailing, ...layerParameters });

/**
 * Runs gated recurrent units over a sequence, as PyTorch's `GRU`. For each step, with the sigmoid σ:
 *
 *     r, z = σ(Wᵢ x + bᵢ + Wₕ h + bₕ),   n = tanh(Wᵢ x + bᵢ + r (Wₕ h + bₕ)),   h ← (1 − z) n + z h
 *
 * Each of r, z and n has separate rows of the weights, in this order.
 *
 * Parameters have PyTorch's names and layout, so its state dicts load. k is the index of the layer; weights of the
 * backward direction have the suffix `_reverse`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight_ih_lk` | [3 · hiddenSize, inputSize]; in later layers [3 · hiddenSize, directions · outputs] |
 * | `weight_hh_lk` | [3 · hiddenSize, outputs] |
 * | `bias_ih_lk`, `bias_hh_lk` | [3 · hiddenSize]; absent without `bias` |
 *
 * Source: K. Cho et al., "Learning phrase representations using RNN encoder–decoder for statistical machine
 * translation", 2014.
 *
 * @example
 * const { output, hidden } = new GRU(8, 16, { batchFirst: true }).forward(randn([4, 10, 8]));
 * output.shape; // [4, 10, 16]
 *
 * @throws {ArgumentError} for a size below 1 and a dropout outside [0, 1).
 */
export class GRU extends Recurrent<RecurrentInputs, RecurrentResult> {
  constructor(
    inputSize: number,
    hiddenSize: number,
    ...options: Given<RecurrentOptions, ["numLayers", "bias", "batchFirst", "dropout", "bidirectional"]>
  );
  constructor(...values: unknown[]) {
    super(gruRecurrence, gruParameters(values));
  }

  /**
   * @param x [steps, batch, inputSize], with `batchFirst` [batch, steps, inputSize], or one sequence [steps, inputSize]
   *
   * @throws {ShapeError} for another rank or size. @throws {DTypeError} if the dtype differs from that of the weights.
   * @throws {ArgumentError} for lengths out of range.
   */
  override forward(x: Tensor, inputs?: RecurrentInputs): RecurrentResult {
    const { output, hidden } = this.run(x, inputs);
    return { output, hidden };
  }
}

const rnnParameters = parameters("RNN", {
  ...leading,
  nonlinearity: optional(choice("tanh", "relu"), "tanh"),
  ...trailing,
  ...layerParameters,
});

/**
 * Runs Elman's recurrent network over a sequence, as PyTorch's `RNN`. For each step:
 *
 *     h ← tanh(Wᵢ x + bᵢ + Wₕ h + bₕ), or relu
 *
 * Parameters have PyTorch's names and layout, so its state dicts load. k is the index of the layer; weights of the
 * backward direction have the suffix `_reverse`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight_ih_lk` | [hiddenSize, inputSize]; in later layers [hiddenSize, directions · outputs] |
 * | `weight_hh_lk` | [hiddenSize, outputs] |
 * | `bias_ih_lk`, `bias_hh_lk` | [hiddenSize]; absent without `bias` |
 *
 * @example
 * const { output } = new RNN(8, 16, 2, "relu").forward(randn([10, 4, 8]));
 * output.shape; // [10, 4, 16]
 *
 * @throws {ArgumentError} for a size below 1 and a dropout outside [0, 1).
 */
export class RNN extends Recurrent<RecurrentInputs, RecurrentResult> {
  constructor(
    inputSize: number,
    hiddenSize: number,
    ...options: Given<RNNOptions, ["numLayers", "nonlinearity", "bias", "batchFirst", "dropout", "bidirectional"]>
  );
  constructor(...values: unknown[]) {
    const { nonlinearity, ...rest } = rnnParameters(values);
    super(elmanRecurrences[nonlinearity], rest);
  }

  /**
   * @param x [steps, batch, inputSize], with `batchFirst` [batch, steps, inputSize], or one sequence [steps, inputSize]
   *
   * @throws {ShapeError} for another rank or size. @throws {DTypeError} if the dtype differs from that of the weights.
   * @throws {ArgumentError} for lengths out of range.
   */
  override forward(x: Tensor, inputs?: RecurrentInputs): RecurrentResult {
    const { output, hidden } = this.run(x, inputs);
    return { output, hidden };
  }
}

const lstmParameters = parameters("LSTM", {
  ...leading,
  ...trailing,
  projSize: optional(notNegativeSize, 0),
  ...layerParameters,
});

/**
 * Runs long short-term memory over a sequence, as PyTorch's `LSTM`. For each step, with the sigmoid σ:
 *
 *     i, f, g, o = σ, σ, tanh, σ of Wᵢ x + bᵢ + Wₕ h + bₕ; each has separate rows of the weights, in this order
 *     c ← f c + i g,   h ← o tanh(c), with `projSize` Wᵣ (o tanh(c))
 *
 * Parameters have PyTorch's names and layout, so its state dicts load. k is the index of the layer; weights of the
 * backward direction have the suffix `_reverse`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight_ih_lk` | [4 · hiddenSize, inputSize]; in later layers [4 · hiddenSize, directions · outputs] |
 * | `weight_hh_lk` | [4 · hiddenSize, outputs] |
 * | `bias_ih_lk`, `bias_hh_lk` | [4 · hiddenSize]; absent without `bias` |
 * | `weight_hr_lk` | [projSize, hiddenSize]; only with `projSize` |
 *
 * Source: S. Hochreiter and J. Schmidhuber, "Long short-term memory", 1997.
 *
 * @example
 * const lstm = new LSTM(8, 16, { numLayers: 2, bidirectional: true });
 * const { output, hidden, cell } = lstm.forward(randn([10, 4, 8]), { lengths: [10, 3, 7, 1] });
 * output.shape; // [10, 4, 32]
 *
 * @throws {ArgumentError} for a size below 1, a dropout outside [0, 1), and a `projSize` that is not below
 * `hiddenSize`.
 */
export class LSTM extends Recurrent<LSTMInputs, LSTMResult> {
  constructor(
    inputSize: number,
    hiddenSize: number,
    ...options: Given<LSTMOptions, ["numLayers", "bias", "batchFirst", "dropout", "bidirectional", "projSize"]>
  );
  constructor(...values: unknown[]) {
    const { projSize, ...rest } = lstmParameters(values);
    checkProjection(projSize, rest.hiddenSize);
    super(lstmRecurrence, rest, projSize);
  }

  /**
   * @param x [steps, batch, inputSize], with `batchFirst` [batch, steps, inputSize], or one sequence [steps, inputSize]
   *
   * @throws {ShapeError} for another rank or size. @throws {DTypeError} if the dtype differs from that of the weights.
   * @throws {ArgumentError} for lengths out of range.
   */
  override forward(x: Tensor, inputs?: LSTMInputs): LSTMResult {
    const { output, hidden, cell } = this.run(x, inputs);
    return { output, hidden, cell: cell! };
  }
}
