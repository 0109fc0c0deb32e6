/** The image encoder of a {@link Sam} model. */
import { tupleOf } from "../../../../core/tuples.ts";
import { flashAttention } from "../../../../ops/attention/flash_attention.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { indexSelect } from "../../../../ops/indexing/gather.ts";
import { cat } from "../../../../ops/join/cat.ts";
import { einsum } from "../../../../ops/matmul/einsum.ts";
import { permute } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow, select } from "../../../../ops/view/slice.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
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
import { gridOfPlanes, planesOf, tokensOf } from "../planes.ts";
import { partsOf, wholeOf } from "../windows.ts";
import type { SamDescription, SamEncoderDescription } from "./description.ts";

/** With more attention scores than this, heads are computed one at a time to limit peak memory. */
const MOST_SCORES = 2 ** 22;

/**
 * Attention on a grid, with relative positions. A score has two additional terms: the products of the query with the
 * embeddings of the distances in rows and in columns.
 *
 * | parameter | shape |
 * |---|---|
 * | `queryKeyValue.weight` | [3 · width, width] |
 * | `rows.weight`, `columns.weight` | [2 · side − 1, headWidth]; null without distances |
 * | `output.weight` | [width, width] |
 *
 * Source: Y. Li et al., "MViTv2", 2022.
 */
export class SamAttention extends Module<[x: Tensor], Tensor> {
  readonly queryKeyValue: Linear | QuantizedLinear;
  readonly output: Linear | QuantizedLinear;
  readonly rows: Embedding | null;
  readonly columns: Embedding | null;
  readonly #heads: number;

  /** @param side the number of rows, and of columns */
  constructor({ width, heads, bias, distances }: SamEncoderDescription, side: number, options: LayerOptions) {
    super();
    const table = () => (distances ? new Embedding(2 * side - 1, width / heads, options) : null);
    this.#heads = heads;
    this.queryKeyValue = new Linear(width, 3 * width, { ...options, bias });
    this.output = new Linear(width, width, { ...options, residual: true });
    [this.rows, this.columns] = [table(), table()];
  }

  /** @param x [batch, rows, columns, width] @returns the same shape */
  override forward(x: Tensor): Tensor {
    const [batch, rows, columns, width] = tupleOf(x.shape, 4);
    const heads = this.#heads;
    const all = reshape(this.queryKeyValue.forward(x), [batch, rows * columns, 3, heads, width / heads]);
    const parts = [0, 1, 2].map((part) => permute(select(all, 2, part), [0, 2, 1, 3]));
    const attend = ([q, k, v]: readonly Tensor[]) =>
      flashAttention(q, k, v, { bias: this.scoresOf(q, [rows, columns]) });
    const isLarge = batch * heads * (rows * columns) ** 2 > MOST_SCORES;
    const headsOf = () =>
      Array.from({ length: heads }, (_, head) => tidy(() => attend(parts.map((part) => narrow(part, 1, head, 1)))));
    const attended = isLarge ? cat(headsOf(), 1) : attend(parts);
    return this.output.forward(reshape(permute(attended, [0, 2, 1, 3]), [...x.shape]));
  }

  /** @param q [batch, heads, places, headWidth] @returns [batch, heads, places, places] */
  private scoresOf(q: Tensor, [rows, columns]: readonly [number, number]): Tensor | undefined {
    if (!this.rows || !this.columns) return undefined;
    const [batch, heads, places, width] = tupleOf(q.shape, 4);
    const grid = reshape(q, [batch, heads, rows, columns, width]);
    const ofRows = einsum("bnhwc,hkc->bnhwk", grid, distancesOf(this.rows, rows));
    const ofColumns = einsum("bnhwc,wkc->bnhwk", grid, distancesOf(this.columns, columns));
    const both = add(unsqueeze(ofRows, 5), unsqueeze(ofColumns, 4));
    return reshape(both, [batch, heads, places, places]);
  }
}

/** Returns the embedding of the distance between each two positions on an axis: [count, count, headWidth]. */
function distancesOf(table: Embedding, count: number): Tensor {
  const pairs = Int32Array.from(
    { length: count * count },
    (_, at) => Math.floor(at / count) - (at % count) + count - 1,
  );
  return reshape(indexSelect(table.weight, 0, tensor(pairs)), [count, count, -1]);
}

/**
 * A pre-norm block: attention within windows or over the whole image, then a feed-forward.
 *
 * | parameter | shape |
 * |---|---|
 * | `attentionNorm.weight`, `feedForwardNorm.weight` | [width] |
 * | `attention. …`, `feedForward. …` | see {@link SamAttention} |
 */
export class SamBlock extends Module<[x: Tensor], Tensor> {
  readonly attentionNorm: LayerNorm;
  readonly attention: SamAttention;
  readonly feedForwardNorm: LayerNorm;
  readonly feedForward: DecoderFeedForward;
  readonly #window: number;

  /** @param window the side of a window; 0 for the whole image @param side the side of the image, in patches */
  constructor(encoder: SamEncoderDescription, window: number, side: number, options: LayerOptions) {
    super();
    const { width, eps, feedForward } = encoder;
    this.#window = window;
    this.attentionNorm = new LayerNorm(width, { ...options, eps });
    this.attention = new SamAttention(encoder, window || side, options);
    this.feedForwardNorm = new LayerNorm(width, { ...options, eps });
    this.feedForward = new DecoderFeedForward({ ...options, width, feedForward });
  }

  /** @param x [batch, rows, columns, width] @returns the same shape */
  override forward(x: Tensor): Tensor {
    return tidy(() => {
      const normed = this.attentionNorm.forward(x);
      const size = this.#window;
      const attended =
        size === 0 ? this.attention.forward(normed) : wholeOf(this.attention.forward(partsOf(normed, size)), x.shape);
      const sum = add(x, attended);
      return add(sum, this.feedForward.forward(this.feedForwardNorm.forward(sum)));
    });
  }
}

/**
 * An image encoder: patches with positions, blocks, and two convolutions.
 *
 * | parameter | shape |
 * |---|---|
 * | `patch.weight` | [width, channels, patch, patch] |
 * | `position.weight` | [patches, width]; null without positions |
 * | `blocks.0. …` | see {@link SamBlock} |
 * | `projection.weight` | [embedding width, width, 1, 1] |
 * | `smoothing.weight` | [embedding width, embedding width, 3, 3] |
 * | `projectionNorm.weight`, `smoothingNorm.weight` | [embedding width] |
 */
export class SamImageEncoder extends Module<[pixels: Tensor], Tensor> {
  readonly patch: Conv2d;
  readonly position: Embedding | null;
  readonly blocks: readonly SamBlock[];
  readonly projection: Conv2d;
  readonly projectionNorm: LayerNorm;
  readonly smoothing: Conv2d;
  readonly smoothingNorm: LayerNorm;

  constructor({ channels, image, patch, width, encoder }: SamDescription, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    const side = Math.floor(image / patch);
    const norm = () => new LayerNorm(width, { ...shared, eps: 1e-6 });
    this.patch = new Conv2d(channels, encoder.width, patch, { ...shared, stride: patch });
    this.position = encoder.positions ? new Embedding(side ** 2, encoder.width, shared) : null;
    this.blocks = Array.from(
      { length: encoder.layers },
      (_, at) => new SamBlock(encoder, encoder.unlimited.includes(at) ? 0 : encoder.window, side, shared),
    );
    this.projection = new Conv2d(encoder.width, width, 1, { ...shared, bias: false });
    this.projectionNorm = norm();
    this.smoothing = new Conv2d(width, width, 3, { ...shared, padding: 1, bias: false });
    this.smoothingNorm = norm();
  }

  /** @param pixels [batch, channels, height, width] @returns [batch, embedding width, rows, columns] */
  override forward(pixels: Tensor): Tensor {
    return tidy(() => {
      const patches = permute(this.patch.forward(pixels), [0, 2, 3, 1]);
      const placed = this.position ? add(patches, reshape(this.position.weight, patches.shape.slice(1))) : patches;
      const states = this.blocks.reduce<Tensor>((x, block) => block.forward(x), placed);
      const projected = overChannels(this.projectionNorm, this.projection.forward(permute(states, [0, 3, 1, 2])));
      return overChannels(this.smoothingNorm, this.smoothing.forward(projected));
    });
  }
}

/** @internal Applies a norm to the channels of planes. */
export const overChannels = (norm: LayerNorm, planes: Tensor): Tensor =>
  planesOf(norm.forward(tokensOf(planes)), gridOfPlanes(planes));
