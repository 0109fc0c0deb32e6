/** BEiT's learned biases of attention, for the distances of patches on a grid. */
import { tensor } from "../../../ops/creation/tensor.ts";
import { indexSelect } from "../../../ops/indexing/gather.ts";
import { cat } from "../../../ops/join/cat.ts";
import { interpolate } from "../../../ops/picture/interpolate.ts";
import { permute } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Grid } from "./planes.ts";
import { distancesIn } from "./windows.ts";

const countOf = ([rows, columns]: Grid): number => (2 * rows - 1) * (2 * columns - 1);

/**
 * The number of rows of a table: distances, and the pairs of the class token with patches and with itself.
 *
 * @internal
 */
export const distanceRows = (grid: Grid): number => countOf(grid) + 3;

/**
 * @internal Returns the biases of a class token and the patches of a grid: [heads, tokens, tokens].
 *
 * @param weight [distances + 3, heads] for the grid `trained`; resized for other grids
 */
export function distanceBias(weight: Tensor, trained: Grid, grid: Grid): Tensor {
  const [count, heads] = [countOf(grid), weight.shape[1]];
  const tokens = grid[0] * grid[1] + 1;
  const pairs = new Int32Array(tokens * tokens).fill(count + 1); // a patch to the class token
  pairs.fill(count, 0, tokens); // the class token to a patch
  pairs[0] = count + 2;
  const patches = distancesIn(...grid);
  for (let row = 1; row < tokens; row++)
    pairs.set(patches.subarray((row - 1) * (tokens - 1), row * (tokens - 1)), row * tokens + 1);
  const table = resized(weight, trained, grid);
  return permute(reshape(indexSelect(table, 0, tensor(pairs)), [tokens, tokens, heads]), [2, 0, 1]);
}

function resized(weight: Tensor, trained: Grid, grid: Grid): Tensor {
  if (trained[0] === grid[0] && trained[1] === grid[1]) return weight;
  const [sides, size] = [trained, grid].map(([rows, columns]) => [2 * rows - 1, 2 * columns - 1]);
  const [count, heads] = [countOf(trained), weight.shape[1]];
  const planes = reshape(permute(narrow(weight, 0, 0, count), [1, 0]), [1, heads, ...sides]);
  const patches = reshape(interpolate(planes, { size, mode: "bilinear" }), [heads, -1]);
  return cat([permute(patches, [1, 0]), narrow(weight, 0, count, 3)], 0);
}
