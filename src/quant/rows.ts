/** Unpacks rows of quantized values one at a time. This is the reference that other backends must match. */
import { bfloat16ToNumber } from "../tensor/bfloat16.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { unpackLevels } from "./affine/pack.ts";
import { type AffineFormat, blockFormat, type GgmlFormat } from "./formats.ts";
import type { WeightAttributes } from "./primitive.ts";

/** Unpacks a row of values, in float32. */
export type UnpackRow = (row: number, out: Float32Array) => void;

/** Returns the function that unpacks rows of weights. @param weights packed values, scales and biases */
export function rowsOf({ format, columns }: WeightAttributes, weights: readonly Tensor[]): UnpackRow {
  return typeof format === "string" ? blockRows(format, columns, weights[0]) : affineRows(format, columns, weights);
}

function blockRows(format: GgmlFormat, columns: number, { storage, offset }: Tensor): UnpackRow {
  const { values, bytes: blockBytes, unpack } = blockFormat(format);
  const bytes = storage.array("uint8");
  const rowBytes = (columns / values) * blockBytes;
  return (row, out) => {
    for (let column = 0, at = offset + row * rowBytes; column < columns; column += values, at += blockBytes)
      unpack(bytes, at, out, column);
  };
}

function affineRows(format: AffineFormat, columns: number, weights: readonly Tensor[]): UnpackRow {
  const [packed, scales, biases] = weights as [Tensor, Tensor, Tensor?];
  const { bits, groupSize } = format;
  const words = packed.storage.array("uint32");
  const [rowWords, rowGroups] = [(columns / 32) * bits, columns / groupSize];
  const [scaleAt, biasAt] = [numbersIn(scales), biases ? numbersIn(biases) : undefined];
  const levels = new Uint8Array(columns);
  const center = 2 ** (bits - 1);
  return (row, out) => {
    const first = packed.offset + row * rowWords;
    unpackLevels(words.subarray(first, first + rowWords), bits, levels);
    for (let column = 0; column < columns; column++) {
      const group = row * rowGroups + Math.floor(column / groupSize);
      const scale = scaleAt(group);
      out[column] = biasAt ? Math.fround(scale * levels[column]) + biasAt(group) : scale * (levels[column] - center);
    }
  };
}

/** The elements of a dense tensor. */
function numbersIn({ storage, dtype, offset }: Tensor): (at: number) => number {
  const stored = storage.array(dtype);
  return dtype === "bfloat16"
    ? (at) => bfloat16ToNumber(Number(stored[offset + at]))
    : (at) => Number(stored[offset + at]);
}
