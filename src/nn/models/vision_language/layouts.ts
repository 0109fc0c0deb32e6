/** How the prompts of each family represent images. */
import { ArgumentError } from "../../../core/errors.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { stack } from "../../../ops/join/cat.ts";
import { resizeBytes } from "../../../ops/picture/pillow.ts";
import { expand } from "../../../ops/view/expand.ts";
import { permute } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { bytesOf, filters, type ImageProcessor } from "../vision/processor/processor.ts";
import type { ImageLayout } from "./chat_processor.ts";

/** Sizes of {@link patchLayout}. */
export interface PatchSizes {
  /** Height and width of a patch in pixels. */
  readonly patch: number;
  /** The number of frames of a patch; an image is repeated to fill them. */
  readonly frames: number;
  /** Rows and columns of patches that become one token. */
  readonly merge: number;
}

/** Qwen: images of any size, in the order of {@link patchesOf}. */
export const patchLayout = (
  processor: ImageProcessor,
  { patch, frames, merge }: PatchSizes,
  token: string,
): ImageLayout => ({
  placeholder: token,
  prepare(image) {
    const [height, width] = tupleOf(image.shape.slice(1), 2);
    if (Math.max(height, width) > 200 * Math.min(height, width))
      throw new ArgumentError(
        "ChatProcessor.prompt",
        "imageTooNarrow",
        `expected an image whose longer side is at most 200 times the shorter one, got ${height} x ${width}`,
      );
    return tidy(() => {
      const pixels: Tensor = processor.process(image);
      const grid = [pixels.shape[2] / patch, pixels.shape[3] / patch] as const;
      const blocks = reshape(pixels, [3, 1, grid[0] / merge, merge, patch, grid[1] / merge, merge, patch]);
      const repeated = expand(blocks, [3, frames, ...blocks.shape.slice(2)]);
      const patches = reshape(permute(repeated, [2, 5, 3, 6, 0, 1, 4, 7]), [grid[0] * grid[1], -1]);
      const tokens = (grid[0] * grid[1]) / merge ** 2;
      return { inputs: { pixels: patches, grid, tokens }, text: token.repeat(tokens) };
    });
  },
});

/** Gemma 3 and LLaVA: images of one size, with the same number of tokens. */
export const fixedLayout = (
  processor: ImageProcessor,
  count: number,
  token: string,
  around?: { readonly placeholder: string; readonly before: string; readonly after: string },
): ImageLayout => ({
  placeholder: around?.placeholder ?? token,
  prepare: (image) => ({
    inputs: inputsOf([processor.process(image)], count),
    text: `${around?.before ?? ""}${token.repeat(count)}${around?.after ?? ""}`,
  }),
});

/** Joins crops [1, 3, height, width]. */
const inputsOf = (crops: readonly Tensor[], tokens: number) => ({
  pixels: reshape(stack(crops), [crops.length, ...crops[0].shape.slice(1)]),
  grid: [1, 1] as const,
  tokens: crops.length * tokens,
});

/** Sizes of {@link tileLayout}. */
export interface TileSizes {
  /** The longer side to which images are resized first; 0: images keep their size. */
  readonly longest: number;
  /** Height and width of a tile. */
  readonly tile: number;
  /** Whether images are split into tiles. Otherwise an image is one tile. */
  readonly splits: boolean;
  /** The number of tokens of a tile. */
  readonly count: number;
}

/** SmolVLM and Idefics3: the tiles of an image row by row, then the whole image, resized to one tile. */
export const tileLayout = (processor: ImageProcessor, sizes: TileSizes, token: string): ImageLayout => ({
  placeholder: token,
  prepare: (image) =>
    tidy(() => {
      const { tile, splits, count } = sizes;
      const { filter = "lanczos" } = processor.description;
      const resized = (x: Tensor, size: readonly [number, number]): Tensor =>
        toDType(resizeBytes(x, size, filters[filter]), "uint8");
      const bytes = bytesOf(image);
      const first = sizes.longest > 0 ? resized(bytes, longestSize(bytes, sizes.longest)) : bytes;
      const whole = splits ? resized(first, tiledSize(first, tile)) : first;
      const [rows, columns] = splits ? [whole.shape[1] / tile, whole.shape[2] / tile] : [1, 1];
      const run = token.repeat(count);
      if (rows * columns === 1)
        return {
          inputs: inputsOf([processor.process(whole)], count),
          text: `${FAKE}<global-img>${run}${FAKE}`,
        };
      const crops: Tensor[] = [];
      let text = "";
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          const crop = narrow(narrow(whole, 1, row * tile, tile), 2, column * tile, tile);
          crops.push(processor.process(crop));
          text += `${FAKE}<row_${row + 1}_col_${column + 1}>${run}`;
        }
        text += "\n";
      }
      crops.push(processor.process(whole));
      return { inputs: inputsOf(crops, count), text: `${text}\n${FAKE}<global-img>${run}${FAKE}` };
    }),
});

/** Sizes of {@link canvasLayout}. */
export interface CanvasSizes {
  /** Height and width of a tile. */
  readonly tile: readonly [height: number, width: number];
  /** The minimum and maximum number of tiles. */
  readonly counts: readonly [least: number, most: number];
  /** The number of tokens of a tile. */
  readonly count: number;
}

/**
 * The layout of InternVL: the image is resized to whole rows and columns of tiles. If there are several tiles, the
 * whole image follows, resized to one tile.
 */
export const canvasLayout = (processor: ImageProcessor, sizes: CanvasSizes, token: string): ImageLayout => ({
  placeholder: token,
  prepare: (image) =>
    tidy(() => {
      const { tile, count } = sizes;
      const [height, width] = tile;
      const { filter = "bicubic" } = processor.description;
      const bytes = bytesOf(image);
      const [rows, columns] = canvasOf(bytes, sizes);
      const whole: Tensor = toDType(resizeBytes(bytes, [rows * height, columns * width], filters[filter]), "uint8");
      const crops: Tensor[] = [];
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < columns; column++)
          crops.push(processor.process(narrow(narrow(whole, 1, row * height, height), 2, column * width, width)));
      if (crops.length > 1) crops.push(processor.process(bytes));
      return { inputs: inputsOf(crops, count), text: `<img>${token.repeat(crops.length * count)}</img>` };
    }),
});

/**
 * Returns the numbers of rows and columns of tiles whose aspect ratio is closest to the image's. Of several with the
 * same ratio, returns the largest whose area is less than twice the image's.
 *
 * Source: Hugging Face's `get_optimal_tiled_canvas`.
 */
function canvasOf({ shape }: Tensor, { tile, counts: [least, most] }: CanvasSizes): readonly [number, number] {
  const [height, width] = tupleOf(shape.slice(1), 2);
  const sides = Array.from({ length: most }, (_, side) => side + 1);
  const grids = sides
    .flatMap((columns) => sides.map((rows) => ({ rows, columns, count: rows * columns })))
    .filter(({ count }) => count >= least && count <= most)
    .sort((a, b) => a.count - b.count);
  let best = { rows: 1, columns: 1, distance: Number.POSITIVE_INFINITY };
  for (const { rows, columns, count } of grids) {
    const distance = Math.abs(width / height - columns / rows);
    const isLarge = height * width > 0.5 * tile[0] * tile[1] * count;
    if (distance < best.distance || (distance === best.distance && isLarge)) best = { rows, columns, distance };
  }
  return [best.rows, best.columns];
}

const FAKE = "<fake_token_around_image>";

/** The largest side of an image. */
const MOST_SIDE = 4096;

/** Resizes the longer side to `longest`, at most 4096, and rounds the shorter side to an even number. */
function longestSize({ shape }: Tensor, longest: number): readonly [number, number] {
  const [height, width] = tupleOf(shape.slice(1), 2);
  const even = (side: number) => Math.trunc(side) + (Math.trunc(side) % 2);
  const ratio = width / height;
  const sides = width >= height ? [even(longest / ratio), longest] : [longest, even(longest * ratio)];
  return withinMost(
    tupleOf(
      sides.map((side) => Math.max(1, side)),
      2,
    ),
  );
}

function withinMost([height, width]: readonly [number, number]): readonly [number, number] {
  if (Math.max(height, width) <= MOST_SIDE) return [height, width];
  const ratio = width / height;
  const sides = width >= height ? [MOST_SIDE / ratio, MOST_SIDE] : [MOST_SIDE, MOST_SIDE * ratio];
  return tupleOf(
    sides.map((side) => Math.max(1, Math.trunc(side))),
    2,
  );
}

/** Both sides become multiples of `tile`; the shorter one keeps the aspect ratio of the resized image. */
function tiledSize({ shape }: Tensor, tile: number): readonly [number, number] {
  const [height, width] = tupleOf(shape.slice(1), 2);
  const up = (side: number) => Math.ceil(side / tile) * tile;
  const ratio = width / height;
  if (width >= height) return [up(Math.trunc(up(width) / ratio)), up(width)];
  return [up(height), up(Math.trunc(up(height) * ratio))];
}
