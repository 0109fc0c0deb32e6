/** The arguments that all Metal kernels of products with quantized weights share (`kernels/quant/product.h`). */
import { type Operand, reads, startOf, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatConstants, readBytes, weightBuffers, weightsStruct } from "../metal.ts";
import { quantProduct } from "../primitive.ts";
import { layoutOfRows, type RowsAttributes } from "./attributes.ts";

/** The arguments of a product kernel: one matrix, or the matrices of gate and up. */
export interface ProductLaunch {
  readonly attributes: RowsAttributes;
  readonly x: Tensor;
  readonly matrices: readonly (readonly Tensor[])[];
  /** The bias of each matrix, in the same order. */
  readonly biases: readonly (Tensor | undefined)[];
  /** The ordinal of a gate's activation; 0 if there is none. */
  readonly activation: number;
  readonly output: Tensor;
}

/** The first part of a kernel's name. */
export const kindOf = ({ matrices }: ProductLaunch): string => (matrices.length === 2 ? "quant_gated" : "quant");

export const workOf = ({ attributes: { rows, columns, count }, matrices }: ProductLaunch): number =>
  2 * rows * columns * count * matrices.length;

/** The operands of a product; `xs` represent x. x stands in for an absent bias, which the kernel does not read. */
export const operandsOf = ({ x, matrices, biases, output }: ProductLaunch, xs: readonly Tensor[] = [x]): Operand[] => [
  ...matrices.flatMap(weightBuffers),
  ...[...xs, ...biases.map((bias) => bias ?? x)].map(reads),
  writes(output),
];

/**
 * Function constants 0 to 9. Rows are copied to threadgroup memory `parts` parts at a time; the meaning of constant 7
 * differs between kernels.
 */
export const constantsOf = (
  { attributes, matrices, biases, activation }: ProductLaunch,
  parts: number,
  seventh: number,
) => [
  ...formatConstants(attributes, matrices[0]),
  Math.min(...matrices.map(([packed]) => readBytes(attributes, packed, parts))),
  seventh,
  biases.reduce((all, bias, at) => all + (bias ? 1 << at : 0), 0),
  activation,
];

export function parametersOf({ attributes, x }: ProductLaunch, ownRows: number): Uint8Array {
  return quantProduct.bytes({
    weights: weightsStruct(attributes),
    count: attributes.count,
    ...layoutOfRows(x)!,
    xStart: startOf(x),
    ownRows,
  });
}
