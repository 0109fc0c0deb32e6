/**
 * Runs recurrent layers over sequences. The products with the inputs of all steps are one matrix product per direction;
 * each step adds one product with its state.
 */
import { zeros } from "../../../ops/creation/full.ts";
import { where } from "../../../ops/elementwise/where.ts";
import { cat, stack } from "../../../ops/join/cat.ts";
import { linear } from "../../../ops/matmul/linear.ts";
import { hasRecurrentKernel, recurrent } from "../../../ops/recurrent/recurrent.ts";
import { select } from "../../../ops/view/slice.ts";
import { unbind } from "../../../ops/view/split.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { DirectionWeights, Recurrence, State } from "./steps.ts";

/** Masks of the steps within each sequence's length. */
export interface Extent {
  /** The mask of each step, bool [batch, 1]; undefined if no sequence has ended. */
  readonly steps: readonly (Tensor<"bool"> | undefined)[];
  /** The masks of all steps, bool [steps, batch, 1]. */
  readonly whole: Tensor<"bool">;
}

/** A network of several layers in one or two directions. */
export interface Network {
  readonly recurrence: Recurrence;
  /** The weights by layer, then by direction. */
  readonly weights: readonly (readonly DirectionWeights[])[];
  /** Applied to the output of every layer but the last. */
  readonly between: (output: Tensor) => Tensor;
}

/** The result of a network over a sequence. */
export interface Run {
  /** [steps, batch, directions · outputs] */
  readonly output: Tensor;
  /** [layers · directions, batch, outputs] */
  readonly hidden: Tensor;
  /** [layers · directions, batch, hidden] */
  readonly cell: Tensor | undefined;
}

/**
 * Runs a network over x [steps, batch, inputs] from states [layers · directions, batch, …]. A sequence that has ended
 * keeps its state, and its later outputs are 0. The backward direction starts at the last step of each sequence.
 */
export function runNetwork({ recurrence, weights, between }: Network, x: Tensor, initial: State, extent?: Extent): Run {
  const last: State[] = [];
  let output = x;
  for (const [layer, directions] of weights.entries()) {
    const input: Tensor = layer === 0 ? output : between(output);
    const runs = directions.map((weights, direction) => {
      const at = layer * directions.length + direction;
      const state = {
        hidden: select(initial.hidden, 0, at),
        cell: initial.cell && select(initial.cell, 0, at),
      };
      return runDirection(recurrence, weights, input, state, direction === 1, extent);
    });
    last.push(...runs.map(({ state }) => state));
    const outputs = runs.map((run) => run.output);
    const joined = outputs.length === 1 ? outputs[0] : cat(outputs, { dim: 2 });
    output = extent ? where(extent.whole, joined, zeros([], { dtype: joined.dtype })) : joined;
  }
  return {
    output,
    hidden: stack(last.map(({ hidden }) => hidden)),
    cell: recurrence.hasCell ? stack(last.map(({ cell }) => cell!)) : undefined,
  };
}

/**
 * Runs all steps in one kernel, if there is one for the operands; returns null otherwise.
 *
 * @param products [steps, batch, gates · hidden], as a {@link Recurrence.step} gets them
 */
export function runInKernel(
  recurrence: Recurrence,
  weights: DirectionWeights,
  products: Tensor,
  { hidden, cell }: State,
  isReversed = false,
): { readonly output: Tensor; readonly state: State } | null {
  const { kind } = recurrence;
  const { hiddenWeight, hiddenBias, projection } = weights;
  const bias = kind === "gru" ? (hiddenBias ?? undefined) : undefined;
  const operands = { products, weight: hiddenWeight, bias, hidden, cell };
  if (projection || !hasRecurrentKernel(operands)) return null;
  const run = recurrent(operands, { kind, isReversed }, (given) => {
    const own = { ...weights, hiddenWeight: given.weight, hiddenBias: given.bias ?? null };
    const steps = runSteps(recurrence, own, given.products, given, isReversed, undefined);
    return { output: steps.output, cell: steps.state.cell };
  });
  const last = select(run.output, 0, isReversed ? 0 : products.shape[0] - 1);
  return { output: run.output, state: { hidden: last, cell: run.cell } };
}

function runDirection(
  recurrence: Recurrence,
  weights: DirectionWeights,
  x: Tensor,
  initial: State,
  isReversed: boolean,
  extent: Extent | undefined,
): { readonly output: Tensor; readonly state: State } {
  const products = linear(x, weights.inputWeight, recurrence.bias(weights));
  const whole = extent ? null : runInKernel(recurrence, weights, products, initial, isReversed);
  return whole ?? runSteps(recurrence, weights, products, initial, isReversed, extent);
}

/** Runs steps that are composed of other operations. */
function runSteps(
  recurrence: Recurrence,
  weights: DirectionWeights,
  products: Tensor,
  initial: State,
  isReversed: boolean,
  extent: Extent | undefined,
): { readonly output: Tensor; readonly state: State } {
  const inputs = unbind(products);
  const outputs = new Array<Tensor>(inputs.length);
  const step = recurrence.step(weights);
  let state = initial;
  for (let count = 0; count < inputs.length; count++) {
    const at = isReversed ? inputs.length - 1 - count : count;
    state = goOn(extent?.steps[at], step(inputs[at], state), state);
    outputs[at] = state.hidden;
  }
  return { output: stack(outputs), state };
}

/** Selects the next state for sequences that continue, and the old state for those that have ended. */
function goOn(goes: Tensor<"bool"> | undefined, next: State, { hidden, cell }: State): State {
  if (goes === undefined) return next;
  return {
    hidden: where(goes, next.hidden, hidden),
    cell: next.cell && where(goes, next.cell, cell!),
  };
}
