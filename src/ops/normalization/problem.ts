/**
 * What one call of a normalization computes, in the terms of every backend: arguments are validated, several normalized
 * axes are one.
 *
 * The last axis of x has the N elements of a row, all others number the rows. For each row:
 *
 *     s     = x + residual                         (1) rounded to the dtype of x; s = x where there is no residual
 *     mean  = Σ s / N                              (2) where it is centred (layerNorm); else 0
 *     scale = 1 / √(Σ (s − mean)² / N + eps)       (3)
 *     n     = (s − mean) · scale                   (4)
 *     out   = n · weight + bias                    (5) each where there is one
 *
 * **Backward**, from the gradients of `out` and, where a residual was added, of `sum` (else 0):
 *
 *     v       = gradOut · weight
 *     gradX   = scale · (v − Σ v / N − n · Σ (v · n) / N) + gradSum     without Σ v / N where it is not centred
 *     gradWeight = Σ gradOut · n,   gradBias = Σ gradOut                over all rows
 *
 * Sums and statistics are at least in float32, and in an order that is the same on every run. What is not finite stays
 * in its row (and in the sums over rows). Source: Ba, Kiros and Hinton, "Layer Normalization", 2016; Zhang and
 * Sennrich, "Root Mean Square Layer Normalization", 2019.
 */
import type { OperationCall } from "../../backend/backend.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { type Slices, slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { InputName, NormalizationAttributes, OutputName } from "./primitive.ts";

/** Tensors by name, those that there are. */
export type Named<Name extends string> = { readonly [Own in Name]?: Tensor | undefined };

/** A call's sizes, and its operands by name. */
export interface NormalizationProblem {
  readonly isCentred: boolean;
  readonly eps: number;
  readonly rows: number;
  readonly length: number;
  /** Of weight, bias and their gradients; that of x where there are none. */
  readonly vectorDType: DType;
  readonly inputs: Named<InputName> & { readonly x: Tensor };
  readonly outputs: Named<OutputName>;
}

export function problemOf({
  inputs,
  outputs,
  attributes,
}: OperationCall<NormalizationAttributes>): NormalizationProblem {
  const { isCentred, eps } = attributes;
  const x = inputs[0]!;
  const length = plainList(x.shape).at(-1)!;
  const named = { ...namedTensors(attributes.inputs, inputs), x };
  const results = namedTensors(attributes.outputs, outputs);
  const vector = named.weight ?? named.bias ?? results.gradWeight ?? results.gradBias;
  return {
    ...{ isCentred, eps, length, rows: x.size / length, vectorDType: (vector ?? x).dtype },
    ...{ inputs: named, outputs: results },
  };
}

export function namedTensors<Name extends string>(names: readonly Name[], tensors: readonly Tensor[]): Named<Name> {
  const named: { [Own in Name]?: Tensor } = {};
  for (const [at, name] of names.entries()) named[name] = tensors[at]!;
  return named;
}

/** The operands that there are, as lists of names and of tensors. */
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

/** Rows of operands of the shape of x, in row-major order, whatever their strides: statistics are numbered so. */
export const rowsOf = (operands: readonly Tensor[]): Slices =>
  slicesOf(operands, operands[0]!.rank - 1, { isOrdered: true });
