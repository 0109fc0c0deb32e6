/** The input of a {@link VisionEncoder}'s first block. */
import { tupleOf } from "../../../core/tuples.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { cat } from "../../../ops/join/cat.ts";
import { interpolate } from "../../../ops/picture/interpolate.ts";
import { expand } from "../../../ops/view/expand.ts";
import { flatten } from "../../../ops/view/flatten.ts";
import { permute, transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import { accumulationDType } from "../../../tensor/dtype.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { Conv2d } from "../../layers/convolution.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { newNorm } from "../decoder/block.ts";
import type { PatchesDescription, VisionDescription } from "./description.ts";

/** Options of {@link VisionEmbeddings}. */
export interface VisionEmbeddingsOptions
  extends LayerOptions,
    Pick<VisionDescription, "width" | "norm" | "patches" | "embeddingNorm"> {}

/** @internal Returns the number of patches along each axis. */
export const gridOf = (
  { size }: Pick<PatchesDescription, "size">,
  [height, width]: readonly [number, number],
): [rows: number, columns: number] => [Math.floor(height / size[0]), Math.floor(width / size[1])];

/** @internal Returns how many tokens precede the patches, and how many of these have a position (`placed`). */
export function tokensBefore({ classToken, distillationToken, registers = 0 }: PatchesDescription) {
  const placed = Number(classToken) + Number(distillationToken ?? false);
  return { placed, all: placed + registers };
}

/** @internal Returns the number of learned positions. */
export function placesOf(patches: PatchesDescription): number {
  const [rows, columns] = gridOf(patches, patches.image);
  return tokensBefore(patches).placed + rows * columns + (patches.detectionTokens ?? 0);
}

/**
 * @internal Returns learned positions for patches on a grid, and of the tokens before and after them.
 *
 * @param weight [positions, width]
 */
export function positionsOn(
  grid: readonly [rows: number, columns: number],
  weight: Tensor,
  description: PatchesDescription,
): { readonly before: Tensor; readonly patches: Tensor; readonly after: Tensor } {
  const { image, positions, detectionTokens = 0 } = description;
  const { placed } = tokensBefore(description);
  const trained = gridOf(description, image);
  const [count, width] = [trained[0] * trained[1], weight.shape[1]];
  const [before, patches] = [narrow(weight, 0, 0, placed), narrow(weight, 0, placed, count)];
  const after = narrow(weight, 0, placed + count, detectionTokens);
  if (positions.kind !== "learned" || (trained[0] === grid[0] && trained[1] === grid[1]))
    return { before, patches, after };
  const { mode, antialias } = positions;
  const planes = reshape(transpose(toDType(patches, accumulationDType(weight.dtype)), 0, 1), [1, width, ...trained]);
  const resized = interpolate(planes, { size: [...grid], mode, antialias });
  return { before, patches: toDType(transpose(reshape(resized, [width, -1]), 0, 1), weight.dtype), after };
}

/**
 * Computes the tokens of images: learned tokens, then the projected patches row by row, with positions.
 *
 * | parameter | shape |
 * |---|---|
 * | `patch.weight` | [width, channels, patch height, patch width]; if it is flat, [width, pixels · channels] |
 * | `classToken.weight`, `distillationToken.weight` | [1, width], if there are any |
 * | `registers.weight` | [registers, width], if there are any |
 * | `detectionTokens.weight` | [detection tokens, width], which follow the patches, if there are any |
 * | `position.weight` | [tokens, width], without registers; null for rotary positions |
 * | `norm.weight` | [width], if there is one |
 */
export class VisionEmbeddings extends Module<[pixels: Tensor], Tensor> {
  readonly patch: Conv2d | Linear | QuantizedLinear;
  readonly classToken: Embedding | null;
  readonly distillationToken: Embedding | null;
  readonly registers: Embedding | null;
  readonly detectionTokens: Embedding | null;
  readonly position: Embedding | null;
  readonly norm: Normalization | null;
  readonly #description: PatchesDescription;

  constructor({ width, norm, patches, embeddingNorm, ...options }: VisionEmbeddingsOptions) {
    super();
    const settings = layerOptions(options);
    const { channels, size, bias, flat, classToken, distillationToken, registers = 0, positions } = patches;
    const table = (rows: number) => (rows > 0 ? new Embedding(rows, width, settings) : null);
    this.#description = patches;
    this.patch = flat
      ? new Linear(size[0] * size[1] * channels, width, { ...settings, bias })
      : new Conv2d(channels, width, [...size], { ...settings, bias, stride: [...size] });
    this.classToken = table(Number(classToken));
    this.distillationToken = table(Number(distillationToken ?? false));
    this.registers = table(registers);
    this.detectionTokens = table(patches.detectionTokens ?? 0);
    this.position = positions.kind === "learned" ? table(placesOf(patches)) : null;
    this.norm = embeddingNorm ? newNorm(width, norm, settings) : null;
  }

  /** @param pixels [batch, channels, height, width] @returns [batch, tokens, width] */
  override forward(pixels: Tensor): Tensor {
    const { classToken, distillationToken, registers, detectionTokens, position, norm } = this;
    const grid = gridOf(this.#description, tupleOf(pixels.shape.slice(2), 2));
    const patches = this.project(pixels, grid);
    const tables = position ? positionsOn(grid, position.weight, this.#description) : undefined;
    const placed = tables ? add(patches, tables.patches) : patches;
    const firstOf = [classToken, distillationToken].flatMap((table) => (table ? [table.weight] : []));
    const named = firstOf.map((weight, at) => (tables ? add(weight, narrow(tables.before, 0, at, 1)) : weight));
    const before = [...named, ...(registers ? [registers.weight] : [])].map((rows) =>
      expand(rows, [pixels.shape[0], ...rows.shape]),
    );
    const after = detectionTokens
      ? [expand(add(detectionTokens.weight, tables!.after), [pixels.shape[0], ...detectionTokens.weight.shape])]
      : [];
    const tokens = before.length + after.length > 0 ? cat([...before, placed, ...after], 1) : placed;
    return norm ? norm.forward(tokens) : tokens;
  }

  private project(pixels: Tensor, [rows, columns]: readonly [number, number]): Tensor {
    const { patch } = this;
    if (patch instanceof Conv2d) return transpose(flatten(patch.forward(pixels), 2), 1, 2);
    const { channels, size } = this.#description;
    const split = reshape(pixels, [-1, channels, rows, size[0], columns, size[1]]);
    return patch.forward(reshape(permute(split, [0, 2, 4, 3, 5, 1]), [pixels.shape[0], rows * columns, -1]));
  }
}
