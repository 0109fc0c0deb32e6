/** How Metal's kernels cut a product with quantised weights. The figures are untried on a GPU. */
import { blockOf, PART } from "../metal.ts";
import type { RowsAttributes } from "./attributes.ts";

/** A threadgroup's share of a product (`kernels/quant/tiled.metal`). */
export interface QuantTile {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly threads: number;
}

/** Of x Wᵀ, and of both a gate and up: the larger one where there is work for many threadgroups. */
export const tiles = [
  { name: "64x64", rows: 64, columns: 64, depth: 32, threads: 128 },
  { name: "32x32", rows: 32, columns: 32, depth: 32, threads: 128 },
] as const satisfies readonly QuantTile[];

/** Of x W: blocks of 256 values are read whole. */
export const transposedTile = {
  ...{ name: "32x256_transposed", rows: 32, columns: 256, depth: 16, threads: 256 },
} as const satisfies QuantTile;

/** The tile for `count` rows of x and `rows` of weights. */
export const tileFor = (rows: number, count: number): QuantTile =>
  count > 32 && rows * count >= 2 ** 17 ? tiles[0] : tiles[1];

const RUN_BYTES = 14336;

/** Parts of a row of x Wᵀ that come to threadgroup memory at a time: whole blocks, as many as there is room for. */
export function runParts(attributes: RowsAttributes, { columns }: QuantTile): number {
  const { parts, bytes } = blockOf(attributes);
  const fits = (run: number) => run % parts === 0 && columns * (run / parts) * bytes <= RUN_BYTES;
  return [8, 4, 2].find(fits) ?? 1;
}

const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

/** The bytes of `rows` rows of `parts` parts, as threadgroup memory has them. */
export function packedBytes(attributes: RowsAttributes, rows: number, parts: number): number {
  const block = blockOf(attributes);
  return roundUp(rows * (parts / block.parts) * block.bytes, 16);
}

/** `kernels/quant/vector.metal`: rows of x, and what a threadgroup has. */
export const vector = { mostCount: 4, simdgroups: 8, parts: 16, mostRows: 32 } as const;

/** Rows of weights that a SIMD-group multiplies: as many as share x, but 16 threadgroups where there are rows. */
export const vectorRows = (rows: number): number =>
  Math.min(vector.mostRows, Math.max(2, roundUp(Math.ceil(rows / (16 * vector.simdgroups)), 2)));

/** The parts of a transposed tile's rows. */
export const transposedParts = transposedTile.columns / PART;
