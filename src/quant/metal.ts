/** The arguments that every Metal kernel on quantized weights shares (`kernels/quant/weights.h`). */
import type { Operand } from "../backend/metal/launch.ts";
import { reads } from "../backend/metal/launch.ts";
import { bytesOf } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { blockFormat } from "./formats.ts";
import { packingOf, packings, type WeightAttributes } from "./primitive.ts";

/** Values per part, the unit that kernels unpack at a time. */
export const PART = 32;

const scaleTypes: Readonly<Record<string, number>> = { float32: 0, float16: 1, bfloat16: 2 };

/** Returns the number of parts and bytes of a block in kernels. Groups and floats have one part per block. */
export function blockOf({ format }: WeightAttributes): { readonly parts: number; readonly bytes: number } {
  if (typeof format === "object") return { parts: 1, bytes: (PART / 8) * format.bits };
  const { values, bytes } = blockFormat(format);
  return values === 1 ? { parts: 1, bytes: PART * bytes } : { parts: values / PART, bytes };
}

/** Bytes per row. */
function rowBytesOf({ format, columns }: WeightAttributes): number {
  if (typeof format === "object") return (columns / 8) * format.bits;
  const { values, bytes } = blockFormat(format);
  return (columns / values) * bytes;
}

/** Returns the values of `QuantWeights`. */
export const weightsStruct = (attributes: WeightAttributes) => ({
  rows: attributes.rows,
  columns: attributes.columns,
  rowBytes: rowBytesOf(attributes),
});

/** Returns function constants 0 to 5, which specialize a kernel for one format. */
export function formatConstants(attributes: WeightAttributes, [, scales]: readonly Tensor[]): number[] {
  const { format } = attributes;
  const groups = typeof format === "object" ? [format.bits, format.groupSize / PART] : [0, 1];
  const { parts, bytes } = blockOf(attributes);
  return [packings.ordinal(packingOf(format)), ...groups, scaleTypes[scales?.dtype ?? "float32"], parts, bytes];
}

/** Returns the number of bytes a kernel may read at once if it copies `parts` parts of rows at a time. */
export function readBytes(attributes: WeightAttributes, packed: Tensor, parts: number): number {
  const block = blockOf(attributes);
  const steps = [packed.offset * bytesOf(packed.dtype), rowBytesOf(attributes), (parts / block.parts) * block.bytes];
  return [16, 4, 2].find((size) => steps.every((step) => step % size === 0)) ?? 1;
}

/** Operands 0 to 2. The packed values stand in for parts that a format lacks, which kernels do not read. */
export const weightBuffers = ([packed, scales, biases]: readonly Tensor[]): Operand[] =>
  [packed, scales ?? packed, biases ?? packed].map(reads);
