/** Tiles of attention's kernels for NVIDIA GPUs, which keep scores in registers (kernels/attention/fragments.h). */
import type { DType } from "../../tensor/dtype.ts";
import { SIMD_WIDTH, type TiledKernel } from "./tiles.metal.ts";

/**
 * The work of a threadgroup: it holds `16 · down` rows and processes `columns` rows of the other side at a time.
 * `across` SIMD-groups share 16 rows: they divide the rows' elements, or in `gradient_keys` the two gradients.
 */
export interface FragmentTile {
  readonly kernel: TiledKernel;
  /** Bytes of an element of q. */
  readonly bytes: 2 | 4;
  /** The largest D and E that the kernel supports. */
  readonly width: number;
  readonly down: number;
  readonly columns: number;
  readonly across: 1 | 2;
}

const row = (
  kernel: TiledKernel,
  bytes: 2 | 4,
  width: number,
  down: number,
  columns: number,
  across: 1 | 2 = 1,
): FragmentTile => ({ kernel, bytes, width, down, columns, across });

/**
 * Four SIMD-groups, one for each scheduler of a GPU's core; or eight where each needs almost all registers that it can
 * have, so that a core has room for eight in all.
 */
export const fragmentTiles: readonly FragmentTile[] = [
  row("forward", 4, 64, 4, 32),
  row("forward", 4, 128, 4, 16),
  row("forward", 2, 64, 4, 64),
  row("forward", 2, 128, 8, 32),
  row("gradient_queries", 4, 64, 4, 32),
  row("gradient_queries", 4, 128, 2, 16, 2),
  row("gradient_queries", 2, 64, 4, 32),
  row("gradient_queries", 2, 128, 8, 32),
  row("gradient_keys", 4, 64, 4, 16),
  row("gradient_keys", 4, 128, 2, 16, 2),
  row("gradient_keys", 2, 64, 4, 32),
  row("gradient_keys", 2, 128, 4, 32, 2),
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
export const fragmentKernel = ({ kernel, width, down, columns, across }: FragmentTile, type: string) => ({
  file: `attention/${kernel}_fragments.metal`,
  name: `${kernel}_fragments_${type}_${width}_${down}x${columns}`,
  rows: TALL_ROWS * down,
  columns,
  threadgroup: SIMD_WIDTH * down * across,
});
