/** One step of each kind of recurrent network: the next state from a state and the projected input. */
import { relu } from "../../../ops/activation/relu.ts";
import { sigmoid } from "../../../ops/activation/sigmoid.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { tanh } from "../../../ops/elementwise/hyperbolic.ts";
import { lerp } from "../../../ops/elementwise/lerp.ts";
import { addmm } from "../../../ops/matmul/addmm.ts";
import { linear } from "../../../ops/matmul/linear.ts";
import type { RecurrentKind } from "../../../ops/recurrent/kinds.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { split } from "../../../ops/view/split.ts";
import type { Tensor } from "../../../tensor/tensor.ts";

/** The weights of one direction of one layer. Biases are null if there are none. */
export interface DirectionWeights {
  /** [gates · hidden, inputs] */
  readonly inputWeight: Tensor;
  /** [gates · hidden, outputs] */
  readonly hiddenWeight: Tensor;
  /** [gates · hidden] */
  readonly inputBias: Tensor | null;
  /** [gates · hidden] */
  readonly hiddenBias: Tensor | null;
  /** [outputs, hidden]; only for an LSTM with projections. */
  readonly projection?: Tensor | undefined;
}

/** The hidden state, and the cell state of an LSTM: each [batch, …]. */
export interface State {
  readonly hidden: Tensor;
  readonly cell?: Tensor | undefined;
}

/** A kind of recurrent network. */
export interface Recurrence {
  /** The name of the kernel that computes all steps. */
  readonly kind: RecurrentKind;
  /** Number of gates: the weights have this many blocks of rows. */
  readonly gates: number;
  readonly hasCell: boolean;
  /** The bias that is added to the projected inputs. */
  readonly bias: (weights: DirectionWeights) => Tensor | null;
  /**
   * Returns the step function of a direction. Its `input` is x · inputWeightᵀ + {@link bias}, [batch, gates · hidden].
   */
  readonly step: (weights: DirectionWeights) => (input: Tensor, state: State) => State;
}

/** Biases that are only added are summed once, before all steps. */
const bothBiases = ({ inputBias, hiddenBias }: DirectionWeights): Tensor | null =>
  inputBias && hiddenBias ? add(inputBias, hiddenBias) : null;

/** h ← activation(x Wᵢᵀ + bᵢ + h Wₕᵀ + bₕ) */
const elman = (kind: RecurrentKind, activation: (x: Tensor) => Tensor): Recurrence => ({
  kind,
  gates: 1,
  hasCell: false,
  bias: bothBiases,
  step({ hiddenWeight }) {
    const factor = transpose(hiddenWeight, 0, 1);
    return (input, { hidden }) => ({ hidden: activation(addmm(input, hidden, factor)) });
  },
});

/** The recurrences of an RNN, by activation. */
export const elmanRecurrences = {
  tanh: elman("tanh", (x) => tanh(x)),
  relu: elman("relu", (x) => relu(x)),
} as const;

/**
 * LSTM:
 *
 *     i, f, g, o = σ, σ, tanh, σ of x Wᵢᵀ + bᵢ + h Wₕᵀ + bₕ; rows in this order
 *     c ← f c + i g,   h ← o tanh(c), or its projection
 */
export const lstmRecurrence: Recurrence = {
  kind: "lstm",
  gates: 4,
  hasCell: true,
  bias: bothBiases,
  step({ hiddenWeight, projection }) {
    const factor = transpose(hiddenWeight, 0, 1);
    const size = hiddenWeight.shape[0] / 4;
    return (input, { hidden, cell }) => {
      const [kept, candidate, shown] = split(addmm(input, hidden, factor), [2 * size, size, size], { dim: 1 });
      const [write, forget] = split(sigmoid(kept), size, { dim: 1 });
      const next: Tensor = add(mul(forget, cell!), mul(write, tanh(candidate)));
      const output: Tensor = mul(sigmoid(shown), tanh(next));
      return { hidden: projection ? linear(output, projection) : output, cell: next };
    };
  },
};

/**
 * GRU:
 *
 *     r, z = σ of x Wᵢᵀ + bᵢ + h Wₕᵀ + bₕ,   n = tanh(x Wᵢᵀ + bᵢ + r (h Wₕᵀ + bₕ)); rows in this order
 *     h ← (1 − z) n + z h
 */
export const gruRecurrence: Recurrence = {
  kind: "gru",
  gates: 3,
  hasCell: false,
  bias: ({ inputBias }) => inputBias,
  step({ hiddenWeight, hiddenBias }) {
    const size = hiddenWeight.shape[0] / 3;
    return (input, { hidden }) => {
      const [inputGates, inputCandidate] = split(input, [2 * size, size], { dim: 1 });
      const [hiddenGates, hiddenCandidate] = split(linear(hidden, hiddenWeight, hiddenBias), [2 * size, size], {
        dim: 1,
      });
      const [reset, update] = split(sigmoid(add(inputGates, hiddenGates)), size, { dim: 1 });
      const candidate: Tensor = tanh(add(inputCandidate, mul(reset, hiddenCandidate)));
      return { hidden: lerp(candidate, hidden, update) };
    };
  },
};
