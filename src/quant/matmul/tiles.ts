/** How the Metal kernels tile a product with quantized weights. The tile sizes have not been tested on a GPU. */
import { blockOf, PART } from "../metal.ts";
import type { RowsAttributes } from "./attributes.ts";

/** The tile of a threadgroup (`kernels/quant/tiled.metal`). */
export interface QuantTile {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly threads: number;
}

/** The tiles of x Wᵀ and of gated products; the larger one is used if there is work for many threadgroups. */
export const tiles = [
  { name: "64x64", rows: 64, columns: 64, depth: 32, threads: 128 },
  { name: "32x32", rows: 32, columns: 32, depth: 32, threads: 128 },
] as const satisfies readonly QuantTile[];

/** The tile of x W, which reads whole blocks of 256 values. */
export const transposedTile = {
  name: "32x256_transposed",
  rows: 32,
  columns: 256,
  depth: 16,
  threads: 256,
} as const satisfies QuantTile;

/** Returns the tile for `count` rows of x and `rows` of weights. */
export const tileFor = (rows: number, count: number): QuantTile =>
  count > 32 && rows * count >= 2 ** 17 ? tiles[0] : tiles[1];

/** The tiles of products of bytes (`kernels/quant/bytes.metal`). */
export const byteTiles = [
  { name: "64x64", rows: 64, columns: 64, depth: 32, threads: 128 },
  { name: "32x64", rows: 32, columns: 64, depth: 32, threads: 128 },
] as const satisfies readonly QuantTile[];

/** Returns the tile of bytes for `count` rows of x and `rows` of weights. */
export const byteTileFor = (rows: number, count: number): QuantTile =>
  tileFor(rows, count) === tiles[0] ? byteTiles[0] : byteTiles[1];

const RUN_BYTES = 14336;

/** Returns the parts of a row of x Wᵀ that are copied to threadgroup memory at a time: as many whole blocks as fit. */
export function runParts(attributes: RowsAttributes, { columns }: QuantTile): number {
  const { parts, bytes } = blockOf(attributes);
  const fits = (run: number) => run % parts === 0 && columns * (run / parts) * bytes <= RUN_BYTES;
  return [8, 4, 2].find(fits) ?? 1;
}

const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

/** Returns the threadgroup memory of `rows` rows of `parts` parts, in bytes. */
export function packedBytes(attributes: RowsAttributes, rows: number, parts: number): number {
  const block = blockOf(attributes);
  return roundUp(rows * (parts / block.parts) * block.bytes, 16);
}

/** The limits and sizes of `kernels/quant/vector.metal`: its largest number of rows of x, and its threadgroup. */
export const vector = { mostCount: 4, simdgroups: 8, parts: 16, mostRows: 32 } as const;

/** Rows of weights per SIMD-group: more rows share a read of x, but there should be 16 threadgroups if possible. */
export const vectorRows = (rows: number): number =>
  Math.min(vector.mostRows, Math.max(2, roundUp(Math.ceil(rows / (16 * vector.simdgroups)), 2)));

/** Parts per row of the transposed tile. */
export const transposedParts = transposedTile.columns / PART;
