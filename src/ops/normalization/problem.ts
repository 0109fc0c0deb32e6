/**
 * What one call of a normalization computes, in the terms of every backend: arguments are validated, several normalized axes are one.
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
 * Sums and statistics are at least in float32, and in an order that is the same on every run. What is not finite stays in its row (and in
 * the sums over rows). Source: Ba, Kiros and Hinton, "Layer Normalization", 2016; Zhang and Sennrich, "Root Mean Square Layer
 * Normalization", 2019.
 */
import type { OperationCall } from "../../backend/backend.ts";
import type { DType } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Lines } from "../scan/lines.ts";

/**
 * The operands of both passes. A call's attributes name those that it has, in their order. T is the dtype of x, S float32 (float64 where T is).
 *
 * | name | shape | dtype |
 * |---|---|---|
 * | x, of the backward (1) | [..., N] | T |
 * | residual, gradOut, gradSum | [..., N] | T |
 * | weight, bias | [N] | T or float32, both the same |
 * | mean, scale | [...] | S, row-major |
 *
 * All but `mean` and `scale` come in any strides, negative and 0 too. There may be no rows; N is at least 1.
 */
export type InputName = "x" | "residual" | "weight" | "bias" | "mean" | "scale" | "gradOut" | "gradSum";

/** The results, row-major: of the forward (`sum` with a residual, `mean` where centred), and those of the backward that are needed. */
export type OutputName = "out" | "sum" | "mean" | "scale" | "gradX" | "gradWeight" | "gradBias";

export interface NormalizationAttributes {
  /** Names the call's inputs, in their order. */
  readonly inputs: readonly InputName[];
  /** Names the call's outputs, in their order. */
  readonly outputs: readonly OutputName[];
  /** Whether the mean is taken off. */
  readonly isCentred: boolean;
  readonly eps: number;
}

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
  const length = x.shape.at(-1)!;
  const named = { ...namedTensors(attributes.inputs, inputs), x };
  const results = namedTensors(attributes.outputs, outputs);
  const vector = named.weight ?? named.bias ?? results.gradWeight ?? results.gradBias;
  return {
    ...{ isCentred, eps, length, rows: x.size / length, vectorDType: (vector ?? x).dtype },
    ...{ inputs: named, outputs: results },
  };
}

export const namedTensors = <Name extends string>(names: readonly Name[], tensors: readonly Tensor[]): Named<Name> =>
  Object.fromEntries(names.map((name, at) => [name, tensors[at]!])) as Named<Name>;

/** The operands that there are, as lists of names and of tensors. */
export function present<Name extends string>(operands: Named<Name>): { names: Name[]; tensors: Tensor[] } {
  const names = (Object.keys(operands) as Name[]).filter((name) => operands[name]);
  return { names, tensors: names.map((name) => operands[name]!) };
}

/** Statistics and sums are float32, but float64 of float64. */
export const statisticsDType = (dtype: DType): "float64" | "float32" => (dtype === "float64" ? "float64" : "float32");

/** Rows of operands of the shape of x, in row-major order, whatever their strides: statistics are numbered so. */
export function rowsOf(operands: readonly Tensor[]): Lines {
  const nest = collapse(
    operands[0]!.shape.slice(0, -1),
    operands.map(({ strides }) => strides.slice(0, -1)),
  );
  const isOne = nest.shape.length === 0;
  return {
    length: operands[0]!.shape.at(-1)!,
    along: operands.map(({ strides }) => strides.at(-1)!),
    offsets: operands.map(({ offset }) => offset),
    shape: isOne ? [1] : nest.shape,
    strides: isOne ? operands.map(() => [1]) : nest.strides,
  };
}
