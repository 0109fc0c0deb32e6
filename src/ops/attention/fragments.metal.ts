/** Tiles of attention's kernels for NVIDIA GPUs, which keep scores in registers (kernels/attention/fragments.h). */
import type { DType } from "../../tensor/dtype.ts";
import { SIMD_WIDTH, type TiledKernel } from "./tiles.metal.ts";

/**
 * The work of a threadgroup: it holds `16 · down` rows, 16 in each SIMD-group, and processes `columns` rows of the
 * other side at a time.
 */
export interface FragmentTile {
  readonly kernel: TiledKernel;
  /** Bytes of an element of q. */
  readonly bytes: 2 | 4;
  /** The largest D and E that the kernel supports. */
  readonly width: number;
  readonly down: number;
  readonly columns: number;
}

const row = (kernel: TiledKernel, bytes: 2 | 4, width: number, down: number, columns: number): FragmentTile => ({
  kernel,
  bytes,
  width,
  down,
  columns,
});

/**
 * Four SIMD-groups, one for each scheduler of a GPU's core. Gradients of float32, and of rows that need more registers
 * than there are, have no row here: on an H200 these kernels are not faster than the others.
 */
export const fragmentTiles: readonly FragmentTile[] = [
  row("forward", 4, 64, 4, 16),
  row("forward", 4, 128, 4, 16),
  row("forward", 2, 64, 4, 64),
  row("forward", 2, 128, 4, 32),
  row("gradient_queries", 2, 64, 4, 32),
  row("gradient_queries", 2, 128, 4, 32),
  row("gradient_keys", 2, 64, 4, 32),
];

/** Returns the narrowest tile that fits; undefined if there is none. */
export function fragmentTileFor(
  kernel: TiledKernel,
  dtype: DType,
  dim: number,
  valueDim: number,
): FragmentTile | undefined {
  const bytes = dtype === "float32" ? 4 : 2;
  return fragmentTiles.find(
    (tile) => tile.kernel === kernel && tile.bytes === bytes && Math.max(dim, valueDim) <= tile.width,
  );
}

const TALL_ROWS = 16;

/** Returns how a tile's kernel is launched. */
export const fragmentKernel = ({ kernel, width, down, columns }: FragmentTile, type: string) => ({
  file: `attention/${kernel}_fragments.metal`,
  name: `${kernel}_fragments_${type}_${width}_${down}x${columns}`,
  rows: TALL_ROWS * down,
  columns,
  threadgroup: SIMD_WIDTH * down,
});
