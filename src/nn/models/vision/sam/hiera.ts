/** The image encoder of a {@link Sam2} model. */
import { tupleOf } from "../../../../core/tuples.ts";
import { flashAttention } from "../../../../ops/attention/flash_attention.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { interpolate } from "../../../../ops/picture/interpolate.ts";
import { maxPool2d } from "../../../../ops/pooling/max_pool.ts";
import { permute } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { select } from "../../../../ops/view/slice.ts";
import { accumulationDType } from "../../../../tensor/dtype.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { Embedding } from "../../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { DecoderFeedForward } from "../../decoder/feed_forward.ts";
import { partsOf, wholeOf } from "../windows.ts";
import type { HieraDescription, HieraStageDescription } from "./description.ts";

/** Returns the largest number of each square of places: [batch, rows / size, columns / size, width]. */
const pooled = (x: Tensor, size: number): Tensor =>
  size === 1 ? x : permute(maxPool2d(permute(x, [0, 3, 1, 2]), size), [0, 2, 3, 1]);

/**
 * Attention on a grid. With a `pool`, queries are max-pooled over squares of the grid, so that the result has a smaller
 * grid.
 *
 * | parameter | shape |
 * |---|---|
 * | `queryKeyValue.weight` | [3 · width, input width] |
 * | `output.weight` | [width, width] |
 */
export class HieraAttention extends Module<[x: Tensor], Tensor> {
  readonly queryKeyValue: Linear | QuantizedLinear;
  readonly output: Linear | QuantizedLinear;
  readonly #stage: HieraStageDescription;
  readonly #pool: number;

  constructor(inputs: number, stage: HieraStageDescription, pool: number, options: LayerOptions) {
    super();
    this.#stage = stage;
    this.#pool = pool;
    this.queryKeyValue = new Linear(inputs, 3 * stage.width, options);
    this.output = new Linear(stage.width, stage.width, { ...options, residual: true });
  }

  /** @param x [batch, rows, columns, input width] @returns [batch, rows / pool, columns / pool, width] */
  override forward(x: Tensor): Tensor {
    const [batch, rows, columns] = tupleOf(x.shape, 4);
    const { heads, width } = this.#stage;
    const all = reshape(this.queryKeyValue.forward(x), [batch, rows, columns, 3, width]);
    const [q, k, v] = [0, 1, 2].map((part) => select(all, 3, part));
    const queries = pooled(q, this.#pool);
    const split = (states: Tensor) => permute(reshape(states, [batch, -1, heads, width / heads]), [0, 2, 1, 3]);
    const attended = flashAttention(split(queries), split(k), split(v), {});
    return this.output.forward(reshape(permute(attended, [0, 2, 1, 3]), [...queries.shape]));
  }
}

/**
 * A pre-norm block: attention within windows or over the whole image, then a feed-forward. The first block of a stage
 * changes the width, and may narrow the grid.
 *
 * | parameter | shape |
 * |---|---|
 * | `attentionNorm.weight`, `feedForwardNorm.weight` | [input width], [width] |
 * | `projection.weight` | [width, input width]; null if the width does not change |
 * | `attention. …` | see {@link HieraAttention} |
 * | `feedForward. …` | `up` and `down` |
 */
export class HieraBlock extends Module<[x: Tensor], Tensor> {
  readonly attentionNorm: LayerNorm;
  readonly attention: HieraAttention;
  readonly feedForwardNorm: LayerNorm;
  readonly feedForward: DecoderFeedForward;
  readonly projection: Linear | QuantizedLinear | null;
  readonly #window: number;
  readonly #pool: number;

  /** @param inputs the width of the input @param window the side of a window; 0 for the whole image */
  constructor(
    { eps, ratio, activation }: HieraDescription,
    stage: HieraStageDescription,
    { inputs, window, pool }: { readonly inputs: number; readonly window: number; readonly pool: number },
    options: LayerOptions,
  ) {
    super();
    const { width } = stage;
    const feedForward = { hidden: Math.trunc(width * ratio), gated: false, activation, bias: true };
    this.#window = window;
    this.#pool = pool;
    this.attentionNorm = new LayerNorm(inputs, { ...options, eps });
    this.attention = new HieraAttention(inputs, stage, pool, options);
    this.feedForwardNorm = new LayerNorm(width, { ...options, eps });
    this.feedForward = new DecoderFeedForward({ ...options, width, feedForward });
    this.projection = inputs === width ? null : new Linear(inputs, width, options);
  }

  /** @param x [batch, rows, columns, input width] @returns [batch, rows / pool, columns / pool, width] */
  override forward(x: Tensor): Tensor {
    return tidy(() => {
      const normed = this.attentionNorm.forward(x);
      const kept = this.projection ? pooled(this.projection.forward(normed), this.#pool) : x;
      const attended =
        this.#window === 0
          ? this.attention.forward(normed)
          : wholeOf(this.attention.forward(partsOf(normed, this.#window)), kept.shape);
      const sum = add(kept, attended);
      return add(sum, this.feedForward.forward(this.feedForwardNorm.forward(sum)));
    });
  }
}

/**
 * Patches with positions, then stages of blocks.
 *
 * | parameter | shape |
 * |---|---|
 * | `patch.weight` | [width, channels, patch, patch] |
 * | `position.weight` | [width, side · side], resized to the grid of patches |
 * | `windowPosition.weight` | [width, window · window], repeated in each window |
 * | `blocks.0. …` | see {@link HieraBlock} |
 *
 * Sources: C. Ryali et al., "Hiera", 2023; D. Bolya et al., "Window Attention is Bugged", 2023, for the positions.
 */
export class Hiera extends Module<[pixels: Tensor], Tensor[]> {
  readonly patch: Conv2d;
  readonly position: Embedding;
  readonly windowPosition: Embedding;
  readonly blocks: readonly HieraBlock[];
  readonly #description: HieraDescription;

  constructor(channels: number, description: HieraDescription, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    const { patch, positions, stages, unlimited } = description;
    const first = stages[0];
    const { size, ...strides } = patch;
    this.#description = description;
    this.patch = new Conv2d(channels, first.width, size, { ...shared, ...strides });
    this.position = new Embedding(first.width, positions ** 2, shared);
    this.windowPosition = new Embedding(first.width, first.window ** 2, shared);
    const indexed = stages.flatMap((stage, at) => Array.from({ length: stage.layers }, (_, block) => ({ at, block })));
    this.blocks = indexed.map(({ at, block }, index) => {
      // the first block of a stage still has the windows of the stage before
      const from = stages[block === 0 && at > 0 ? at - 1 : at];
      const window = unlimited.includes(index) ? 0 : from.window;
      const pool = block === 0 ? stages[at].pool : 1;
      return new HieraBlock(description, stages[at], { inputs: from.width, window, pool }, shared);
    });
  }

  /** @param pixels [batch, channels, height, width] @returns the result of each stage: [batch, rows, columns, width] */
  override forward(pixels: Tensor): Tensor[] {
    const patches = permute(this.patch.forward(pixels), [0, 2, 3, 1]);
    let x = add(patches, this.positionsOn(tupleOf(patches.shape.slice(1, 3), 2)));
    let at = 0;
    return this.#description.stages.map(({ layers }) => {
      for (const block of this.blocks.slice(at, at + layers)) x = block.forward(x);
      at += layers;
      return x;
    });
  }

  /** Returns the sum of both kinds of positions: [rows, columns, width]. */
  private positionsOn([rows, columns]: readonly [number, number]): Tensor {
    const { positions, stages } = this.#description;
    const { width, window } = stages[0];
    const { weight } = this.position;
    const whole = reshape(toDType(weight, accumulationDType(weight.dtype)), [1, width, positions, positions]);
    const resized = toDType(interpolate(whole, { size: [rows, columns], mode: "bicubic" }), weight.dtype);
    const own = reshape(this.windowPosition.weight, [width, window, window]);
    const row = cat(new Array<Tensor>(columns / window).fill(own), 2);
    const repeated = cat(new Array<Tensor>(rows / window).fill(row), 1);
    return permute(add(reshape(resized, [width, rows, columns]), repeated), [1, 2, 0]);
  }
}
