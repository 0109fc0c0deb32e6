/**
 * Defines what one normalization call computes on every backend. Arguments are validated, and several normalized axes
 * are merged into one.
 *
 * The last axis of x holds the N elements of a row; all other axes index rows. For each row:
 *
 *     s     = x + residual                         (1) rounded to the dtype of x; s = x without a residual
 *     mean  = Σ s / N                              (2) if centered (layerNorm); else 0
 *     scale = 1 / √(Σ (s − mean)² / N + eps)       (3)
 *     n     = (s − mean) · scale                   (4)
 *     out   = n · weight + bias                    (5) weight and bias are optional
 *
 * **Backward**, from the gradients of `out` and, with a residual, of `sum` (else 0):
 *
 *     v       = gradOut · weight
 *     gradX   = scale · (v − Σ v / N − n · Σ (v · n) / N) + gradSum     without Σ v / N if not centered
 *     gradWeight = Σ gradOut · n,   gradBias = Σ gradOut                over all rows
 *
 * Sums and statistics use at least float32 and run in the same order every time. Values that are not finite affect only
 * their row, and sums over rows. Source: Ba, Kiros and Hinton, "Layer Normalization", 2016; Zhang and Sennrich, "Root
 * Mean Square Layer Normalization", 2019.
 */

import type { OperationCall } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { type Slices, slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { InputName, NormalizationAttributes, OutputName } from "./primitive.ts";

/** Optional tensors by name. */
export type Named<Name extends string> = { readonly [Key in Name]?: Tensor | undefined };

/** A call's sizes, and its operands by name. */
export interface NormalizationProblem {
  readonly isCentered: boolean;
  readonly eps: number;
  readonly rows: number;
  readonly length: number;
  /** Dtype of weight, bias and their gradients; that of x if there are none. */
  readonly vectorDType: DType;
  readonly inputs: Named<InputName> & { readonly x: Tensor };
  readonly outputs: Named<OutputName>;
}

export interface ForwardProblem extends NormalizationProblem {
  readonly outputs: NormalizationProblem["outputs"] & Readonly<Record<"out" | "scale", Tensor>>;
}

export interface BackwardProblem extends NormalizationProblem {
  readonly inputs: NormalizationProblem["inputs"] & Readonly<Record<"gradOut" | "scale", Tensor>>;
}

/** Returns what a call computes, of the type of its pass. */
export function problemOf<Problem extends NormalizationProblem>({
  inputs,
  outputs,
  attributes,
}: OperationCall<NormalizationAttributes>): Problem {
  const { isCentered, eps } = attributes;
  const x = inputs[0];
  const length = lastElement(plainList(x.shape));
  const named = namedTensors<Problem["inputs"]>(attributes.inputs, inputs);
  const results = namedTensors<Problem["outputs"]>(attributes.outputs, outputs);
  const vector = named.weight ?? named.bias ?? results.gradWeight ?? results.gradBias;
  const { dtype: vectorDType } = vector ?? x;
  const sizes = { isCentered, eps, length, rows: x.size / length, vectorDType };
  return { ...sizes, inputs: named, outputs: results } satisfies NormalizationProblem as Problem;
}

/** Returns tensors by name. The type states which names every call has. */
export function namedTensors<All extends object>(names: readonly (keyof All)[], tensors: readonly Tensor[]): All {
  const named: { [Name in keyof All]?: Tensor } = {};
  for (let at = 0; at < names.length; at++) named[names[at]] = tensors[at];
  return named as All;
}

/** Returns the names and tensors of the operands that are present. */
export function present<Name extends string>(operands: Named<Name>): { names: Name[]; tensors: Tensor[] } {
  const [names, tensors]: [Name[], Tensor[]] = [[], []];
  for (const name of Object.keys(operands) as Name[]) {
    const tensor = operands[name];
    if (!tensor) continue;
    names.push(name);
    tensors.push(tensor);
  }
  return { names, tensors };
}

/** Returns the rows of operands of x's shape, in row-major order regardless of strides, as statistics are stored. */
export const rowsOf = (operands: readonly Tensor[]): Slices =>
  slicesOf(operands, operands[0].rank - 1, { isOrdered: true });
