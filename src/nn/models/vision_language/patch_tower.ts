import { lastElement } from "../../../core/collections.ts";
import { gelu } from "../../../ops/activation/gelu.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { indexSelect } from "../../../ops/indexing/gather.ts";
import { cat } from "../../../ops/join/cat.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import { DecoderBlock, newNorm } from "../decoder/block.ts";
import type { PatchTowerDescription } from "./description.ts";
import { type Grid, patchesOf, tablesOf, windowsOf } from "./grid.ts";
import type { ImageInputs } from "./images.ts";

/** Merges `merge` · `merge` patches to one token: output(gelu(hidden(norm(patches)))). */
class PatchMerger extends Module<[x: Tensor], Tensor> {
  readonly norm: Normalization;
  readonly hidden: Linear;
  readonly output: Linear;

  readonly #isNormedLater: boolean;

  /** @param isNormedLater whether merged patches are normalized, instead of patches */
  constructor(description: PatchTowerDescription, options: LayerOptions, isNormedLater = false) {
    super();
    const { width, norm, merge, outputWidth } = description;
    const merged = width * merge ** 2;
    this.#isNormedLater = isNormedLater;
    this.norm = newNorm(isNormedLater ? merged : width, norm, options);
    this.hidden = new Linear(merged, merged, options);
    this.output = new Linear(merged, outputWidth, options);
  }

  /** @param x [patches, width] @returns [tokens, outputWidth] */
  override forward(x: Tensor): Tensor {
    const merged = [-1, this.hidden.weight.shape[1]];
    const normed = this.#isNormedLater ? this.norm.forward(reshape(x, merged)) : reshape(this.norm.forward(x), merged);
    return this.output.forward(gelu(this.hidden.forward(normed)));
  }
}

/**
 * An encoder of images of any size: see {@link PatchTowerDescription}.
 *
 * | parameter | shape |
 * |---|---|
 * | `patch.weight` | [width, patchWidth] |
 * | `position.weight` | [positionRows², width]; null without learned positions |
 * | `blocks.0. …` | norms, `attention` and `feedForward` of each block |
 * | `merger.norm.weight` | [width] |
 * | `merger.hidden.weight` | [merge² · width, merge² · width] |
 * | `merger.output.weight` | [outputWidth, merge² · width] |
 * | `deepMergers.0. …` | as `merger`, for each of `deep`; norms have width merge² · width |
 */
export class PatchTower extends Module<[images: readonly ImageInputs[]], Tensor> {
  readonly patch: Linear;
  readonly blocks: readonly DecoderBlock[];
  readonly merger: PatchMerger;
  readonly deepMergers: readonly PatchMerger[];
  readonly position: Embedding | null;
  readonly #description: PatchTowerDescription;

  constructor(description: PatchTowerDescription, options: LayerOptions = {}) {
    super();
    const { patchWidth, width, norm, layers, patchBias = false, positionRows, deep = [] } = description;
    const shared = layerOptions(options);
    this.#description = description;
    this.patch = new Linear(patchWidth, width, { ...shared, bias: patchBias });
    this.position = positionRows === undefined ? null : new Embedding(positionRows ** 2, width, shared);
    this.blocks = layers.map((layer) => new DecoderBlock({ ...shared, width, norm, layer }));
    this.merger = new PatchMerger(description, shared);
    this.deepMergers = deep.map(() => new PatchMerger(description, shared, true));
  }

  /**
   * @param images their `pixels` are [patches, patchWidth]
   * @returns [tokens of all images, outputWidth]; with `deep`, the features of each level in turn: [tokens,
   * (1 + levels) · outputWidth]
   */
  override forward(images: readonly ImageInputs[]): Tensor {
    const { merge, unlimited = [], deep = [] } = this.#description;
    const grids = images.map(({ grid }) => grid);
    const pixels = cat(
      images.map(({ pixels }) => toDType(pixels, this.patch.weight.dtype)),
      0,
    );
    const { order, windows } = this.windows(grids);
    const patches = order?.flatMap((token) => Array.from({ length: merge ** 2 }, (_, at) => token * merge ** 2 + at));
    const whole = boundsOf(grids.map(([rows, columns]) => rows * columns));
    const rotation = this.rotation(grids, patches);
    const projected = this.patch.forward(pixels);
    const embedded = this.position ? add(projected, this.positions(this.position, grids)) : projected;
    let x = reshape(patches ? rowsOf(embedded, patches) : embedded, [1, pixels.shape[0], -1]);
    const levels = new Map<number, Tensor>();
    const flat = () => reshape(x, [pixels.shape[0], -1]);
    for (const [index, block] of this.blocks.entries()) {
      x = block.forward(x, { rotation, bounds: windows && !unlimited.includes(index) ? windows : whole });
      const level = deep.indexOf(index);
      if (level >= 0) levels.set(level, this.deepMergers[level].forward(flat()));
    }
    const merged = cat([this.merger.forward(flat()), ...deep.map((_, level) => levels.get(level)!)], 1);
    return order ? rowsOf(merged, inverseOf(order)) : merged;
  }

  /** Interpolates learned positions linearly, with the corners of the image aligned with the corners of the table. */
  private positions(table: Embedding, grids: readonly Grid[]): Tensor {
    const { merge, positionRows: side = 1 } = this.#description;
    const places = grids.flatMap((grid) => [...patchesOf(grid, merge)].map((place) => ({ grid, place })));
    const taps = [0, 1, 2, 3].map((tap) => {
      const rows = places.map(({ grid, place }) =>
        [0, 1].map((axis) => tapOf(place[axis], grid[axis], side, axis === 0 ? tap >> 1 : tap & 1)),
      );
      const indices = tensor(
        rows.map(([row, column]) => row.index * side + column.index),
        { dtype: "int32" },
      );
      const weights = tensor(
        rows.map(([row, column]) => [row.weight * column.weight]),
        { dtype: "float32" },
      );
      return mul(table.forward(indices), toDType(weights, table.weight.dtype));
    });
    return taps.reduce((sum, tap) => add(sum, tap));
  }

  /**
   * Returns the order of tokens by windows, and the bounds of windows in patches; both are undefined without windows.
   */
  private windows(grids: readonly Grid[]): { readonly order?: number[]; readonly windows?: number[] } {
    const { merge, window } = this.#description;
    if (window === undefined) return {};
    const [order, counts]: [number[], number[]] = [[], []];
    for (const [rows, columns] of grids) {
      const first = order.length;
      const found = windowsOf([rows / merge, columns / merge], window);
      for (const token of found.order) order.push(first + token);
      counts.push(...found.counts);
    }
    return { order, windows: boundsOf(counts.map((count) => count * merge ** 2)) };
  }

  /** The first half of the pairs rotates by the row, the second half by the column, with the same frequencies. */
  private rotation(grids: readonly Grid[], order: readonly number[] | undefined): ReturnType<typeof tablesOf> {
    const { layers, base, merge } = this.#description;
    const half = layers[0].attention.headWidth / 4;
    const places = grids.flatMap((grid) => [...patchesOf(grid, merge)]);
    const ordered = order ? order.map((patch) => places[patch]) : places;
    const frequencies = Array.from({ length: 2 * half }, (_, pair) => base ** (-(pair % half) / half));
    const axes = frequencies.map((_, pair) => (pair < half ? 0 : 1));
    return tablesOf([ordered.map(([row]) => row), ordered.map(([, column]) => column)], axes, frequencies);
  }
}

const rowsOf = (x: Tensor, rows: readonly number[]): Tensor => indexSelect(x, 0, tensor([...rows], { dtype: "int32" }));

/** Returns one of the two table rows next to a place, and the weight of this row. */
function tapOf(place: number, count: number, side: number, tap: number): { index: number; weight: number } {
  const at = (place * (side - 1)) / Math.max(1, count - 1);
  const first = Math.floor(at);
  return { index: Math.min(first + tap, side - 1), weight: tap === 0 ? 1 - (at - first) : at - first };
}

/** Returns cumulative sums, starting with 0. */
function boundsOf(counts: readonly number[]): number[] {
  const bounds = [0];
  for (const count of counts) bounds.push(lastElement(bounds) + count);
  return bounds;
}

function inverseOf(order: readonly number[]): number[] {
  const inverse = new Array<number>(order.length);
  for (const [at, token] of order.entries()) inverse[token] = at;
  return inverse;
}
