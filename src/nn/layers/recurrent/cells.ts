/** One step of RNN, LSTM and GRU, for custom loops over a sequence. */
import { choice, flag } from "../../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../../core/parameters.ts";
import { lowered } from "../../../ops/autocast/autocast.ts";
import { linear } from "../../../ops/matmul/linear.ts";
import { squeeze, unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { LayerOptions } from "../initialization.ts";
import { layerParameters, size } from "../kinds.ts";
import { Module } from "../module.ts";
import { checkInput, readInputs, stateOrZeros } from "./inputs.ts";
import { runInKernel } from "./sequence.ts";
import { elmanRecurrences, gruRecurrence, lstmRecurrence, type Recurrence, type State } from "./steps.ts";
import { addWeights, weightsOf } from "./weights.ts";

/** Options of {@link GRUCell} and {@link LSTMCell}. */
export interface CellOptions extends LayerOptions {
  /** Whether the cell has biases. Default true. */
  bias?: boolean | undefined;
}

/** Options of {@link RNNCell}. */
export interface RNNCellOptions extends CellOptions {
  /** The activation. Default `"tanh"`. */
  nonlinearity?: "tanh" | "relu" | undefined;
}

/** The state of {@link LSTMCell}. */
export interface LSTMState {
  /** [batch, hiddenSize] */
  readonly hidden: Tensor;
  /** [batch, hiddenSize] */
  readonly cell: Tensor;
}

const sizes = { inputSize: operand(size), hiddenSize: operand(size), bias: optional(flag, true) } as const;

/** Base class of the cells. */
abstract class Cell<Given, Result> extends Module<[x: Tensor, state?: Given], Result> {
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly #recurrence: Recurrence;

  constructor(recurrence: Recurrence, parameters: ReturnType<typeof gruCellParameters>) {
    super();
    const { inputSize, hiddenSize, bias, ...options } = parameters;
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.#recurrence = recurrence;
    const [rows, hidden] = [recurrence.gates * hiddenSize, hiddenSize];
    addWeights(this, "", { inputs: inputSize, hidden, rows, outputs: hidden, bias }, options);
  }

  /** Runs one step on x [batch, inputSize] or [inputSize]. */
  protected run(input: Tensor, states: { readonly hidden?: unknown; readonly cell?: unknown }): State {
    const name = this.constructor.name;
    const weights = lowered(weightsOf(this, ""));
    const { x, ...given } = lowered({ ...states, x: input });
    checkInput(name, x, [1, 2], this.inputSize, weights.inputWeight);
    const isBatch = x.rank === 2;
    const shape = isBatch ? [x.shape[0], this.hiddenSize] : [this.hiddenSize];
    const state = (kind: "hidden" | "cell"): Tensor => {
      const values = stateOrZeros(name, kind, given[kind], shape, weights.inputWeight);
      return isBatch ? values : unsqueeze(values, 0);
    };
    return tidy(() => {
      const product = linear(isBatch ? x : unsqueeze(x, 0), weights.inputWeight, this.#recurrence.bias(weights));
      const old = { hidden: state("hidden"), cell: this.#recurrence.hasCell ? state("cell") : undefined };
      const whole = runInKernel(this.#recurrence, weights, unsqueeze(product, 0), old);
      const { hidden, cell } = whole ? whole.state : this.#recurrence.step(weights)(product, old);
      return isBatch ? { hidden, cell } : { hidden: squeeze(hidden, 0), cell: cell && squeeze(cell, 0) };
    });
  }

  /** @internal */
  override details(): string {
    return `${this.inputSize}, ${this.hiddenSize}`;
  }
}

/**
 * Computes one step of a {@link GRU}.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight_ih`, `weight_hh` | [3 · hiddenSize, inputSize], [3 · hiddenSize, hiddenSize] |
 * | `bias_ih`, `bias_hh` | [3 · hiddenSize]; absent without `bias` |
 *
 * @example
 * const cell = new GRUCell(8, 16);
 * let hidden = zeros([4, 16]);
 * for (const x of unbind(randn([10, 4, 8]))) hidden = cell.forward(x, hidden);
 *
 * @throws {ArgumentError} for a size below 1.
 */
export class GRUCell extends Cell<Tensor, Tensor> {
  constructor(inputSize: number, hiddenSize: number, ...options: Given<CellOptions, ["bias"]>);
  constructor(...values: unknown[]) {
    super(gruRecurrence, gruCellParameters(values));
  }

  /**
   * @param x [batch, inputSize] or [inputSize]
   * @param hidden [batch, hiddenSize] or [hiddenSize]; zeros by default
   * @returns the next hidden state
   * @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError}
   */
  override forward(x: Tensor, hidden?: Tensor): Tensor {
    return this.run(x, { hidden }).hidden;
  }
}
const gruCellParameters = parameters("GRUCell", { ...sizes, ...layerParameters });

/**
 * Computes one step of an {@link RNN}.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight_ih`, `weight_hh` | [hiddenSize, inputSize], [hiddenSize, hiddenSize] |
 * | `bias_ih`, `bias_hh` | [hiddenSize]; absent without `bias` |
 *
 * @example
 * const hidden = new RNNCell(8, 16, { nonlinearity: "relu" }).forward(randn([4, 8]));
 *
 * @throws {ArgumentError} for a size below 1.
 */
export class RNNCell extends Cell<Tensor, Tensor> {
  constructor(inputSize: number, hiddenSize: number, ...options: Given<RNNCellOptions, ["bias", "nonlinearity"]>);
  constructor(...values: unknown[]) {
    const { nonlinearity, ...rest } = rnnCellParameters(values);
    super(elmanRecurrences[nonlinearity], rest);
  }

  /**
   * @param x [batch, inputSize] or [inputSize]
   * @param hidden [batch, hiddenSize] or [hiddenSize]; zeros by default
   * @returns the next hidden state
   * @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError}
   */
  override forward(x: Tensor, hidden?: Tensor): Tensor {
    return this.run(x, { hidden }).hidden;
  }
}
const rnnCellParameters = parameters("RNNCell", {
  ...sizes,
  nonlinearity: optional(choice("tanh", "relu"), "tanh"),
  ...layerParameters,
});

/**
 * Computes one step of an {@link LSTM}.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight_ih`, `weight_hh` | [4 · hiddenSize, inputSize], [4 · hiddenSize, hiddenSize] |
 * | `bias_ih`, `bias_hh` | [4 · hiddenSize]; absent without `bias` |
 *
 * @example
 * const cell = new LSTMCell(8, 16);
 * let state = cell.forward(randn([4, 8]));
 * state = cell.forward(randn([4, 8]), state);
 *
 * @throws {ArgumentError} for a size below 1.
 */
export class LSTMCell extends Cell<LSTMState, LSTMState> {
  constructor(inputSize: number, hiddenSize: number, ...options: Given<CellOptions, ["bias"]>);
  constructor(...values: unknown[]) {
    super(lstmRecurrence, lstmCellParameters(values));
  }

  /**
   * @param x [batch, inputSize] or [inputSize]
   * @param state each [batch, hiddenSize] or [hiddenSize]; zeros by default
   * @returns the next state
   * @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError}
   */
  override forward(x: Tensor, state?: LSTMState): LSTMState {
    const { hidden, cell } = this.run(x, readInputs("LSTMCell", state, true));
    return { hidden, cell: cell! };
  }
}
const lstmCellParameters = parameters("LSTMCell", { ...sizes, ...layerParameters });
