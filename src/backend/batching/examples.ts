/**
 * Calls that compute all examples of `vmap` at once by the rule that the caller declared for a `Function` or a kernel.
 */
import { type BatchLevel, batchLevels, levelsOf, type Randomness } from "../../tensor/batched.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** The begin and end of a `vmap` as operations with gradients. */
export interface Crossing {
  /** Returns a tensor that shows one example of `x`: the axis with the examples disappears. */
  readonly enter: (x: Tensor, axis: number, level: BatchLevel) => Tensor;
  /** Returns a tensor with all examples along an axis. */
  readonly leave: (example: Tensor, axis: number, level: BatchLevel) => Tensor;
}

let crossing: Crossing | undefined;

/** @internal Sets the operations that begin and end a `vmap`, which are in a later layer. */
export function crossBy(operations: Crossing): void {
  crossing = operations;
}

/** @internal Returns the latest `vmap` in whose examples one of these tensors differs. */
export function latestLevelOf(tensors: readonly Tensor[]): BatchLevel | undefined {
  const levels = tensors.flatMap((tensor) => levelsOf(tensor).slice(0, 1));
  return levels.sort((a, b) => b.id - a.id)[0];
}

/** @internal The examples that a rule gets, in the order of the values. */
export interface Examples {
  readonly batchSize: number;
  readonly inDims: readonly (0 | null)[];
  readonly randomness: Randomness;
}

/**
 * @internal Runs a rule on all examples of a level. Tensors that differ between the examples have them along the first
 * axis.
 *
 * @param rule returns tensors with the examples along the first axis
 */
export function applyToExamples(
  level: BatchLevel,
  values: readonly unknown[],
  rule: (info: Examples, given: readonly unknown[]) => readonly Tensor[],
): Tensor[] {
  const isMapped = (value: unknown): value is Tensor => value instanceof Tensor && levelsOf(value).includes(level);
  const given = values.map((value) => (isMapped(value) ? crossing!.leave(value, 0, level) : value));
  const inDims = values.map((value) => (isMapped(value) ? 0 : null));
  const others = batchLevels.get().filter((running) => running !== level);
  const info = { batchSize: level.size, inDims, randomness: level.randomness };
  const outputs = batchLevels.run(others, () => rule(info, given));
  return outputs.map((output) => crossing!.enter(output, 0, level));
}
