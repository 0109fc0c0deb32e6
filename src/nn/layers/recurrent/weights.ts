/** Weights of recurrent layers under PyTorch's names, and their initialization. */

import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, parameter, pytorchInitialization } from "../initialization.ts";
import type { Module } from "../module.ts";
import type { DirectionWeights } from "./steps.ts";

/** The sizes of the weights of one direction. */
export interface WeightSizes {
  readonly inputs: number;
  readonly hidden: number;
  /** gates · hidden */
  readonly rows: number;
  /** Size of the hidden state: `hidden`, or that of its projection. */
  readonly outputs: number;
  readonly bias: boolean;
}

const names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"] as const;

/**
 * Adds the parameters `weight_ih` + suffix and so on to a module; by default uniform in ±1 / √hidden, as in PyTorch.
 */
export function addWeights(owner: Module, suffix: string, sizes: WeightSizes, options: LayerOptions): void {
  const { inputs, hidden, rows, outputs, bias } = sizes;
  const given = options.initialization;
  const fallback = pytorchInitialization.bias(hidden);
  const [weight, start] = [given?.weight ?? fallback, given?.bias(hidden) ?? fallback];
  const made = [
    parameter([rows, inputs], weight, options),
    parameter([rows, outputs], weight, options),
    bias ? parameter([rows], start, options) : null,
    bias ? parameter([rows], start, options) : null,
    outputs === hidden ? null : parameter([outputs, hidden], weight, options),
  ];
  for (const [at, name] of names.entries()) if (made[at]) Reflect.set(owner, `${name}${suffix}`, made[at]);
}

/**
 * Returns the weights that {@link addWeights} added. They are read at each use, because they may have been replaced.
 */
export function weightsOf(owner: Module, suffix: string): DirectionWeights {
  const [inputWeight, hiddenWeight, inputBias, hiddenBias, projection] = names.map(
    (name) => Reflect.get(owner, `${name}${suffix}`) as Tensor | undefined,
  );
  return {
    inputWeight: inputWeight!,
    hiddenWeight: hiddenWeight!,
    projection,
    inputBias: inputBias ?? null,
    hiddenBias: hiddenBias ?? null,
  };
}
