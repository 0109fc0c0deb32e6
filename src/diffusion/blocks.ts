/**
 * The blocks of U-Nets and autoencoders. Properties have the names of `diffusers` in camelCase, so that tensors of its
 * files are found by name.
 */

import { GroupNorm } from "../nn/layers/batch_norm.ts";
import { Identity } from "../nn/layers/containers.ts";
import { Conv2d } from "../nn/layers/convolution.ts";
import { type LayerOptions, layerOptions } from "../nn/layers/initialization.ts";
import { Linear } from "../nn/layers/linear.ts";
import { Module } from "../nn/layers/module.ts";
import { LayerNorm } from "../nn/layers/normalization.ts";
import * as ops from "../ops/index.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** The largest head size of the fused attention. */
const FUSED_WIDTH = 256;

/** Options of {@link Attention}. */
interface AttentionOptions extends LayerOptions {
  readonly width: number;
  readonly contextWidth?: number;
  readonly heads: number;
  /** Whether projections of q, k and v have biases. */
  readonly bias?: boolean;
  /** The groups of a norm before the projections. With a norm, the input is added to the result. */
  readonly groups?: number;
  readonly eps?: number;
}

/** Attention of tokens [batch, tokens, width] to themselves or to a context [batch, others, contextWidth]. */
export class Attention extends Module<[x: Tensor, context?: Tensor], Tensor> {
  readonly groupNorm: GroupNorm | null;
  readonly toQ: Linear;
  readonly toK: Linear;
  readonly toV: Linear;
  readonly toOut: readonly [Linear];
  readonly #heads: number;

  constructor({ width, contextWidth = width, heads, bias = false, groups, eps = 1e-5, ...options }: AttentionOptions) {
    super();
    const layer = { ...layerOptions(options), bias };
    this.groupNorm = groups === undefined ? null : new GroupNorm(groups, width, { ...layerOptions(options), eps });
    this.toQ = new Linear(width, width, layer);
    this.toK = new Linear(contextWidth, width, layer);
    this.toV = new Linear(contextWidth, width, layer);
    this.toOut = [new Linear(width, width, layerOptions(options))];
    this.#heads = heads;
  }

  /** With a norm, x is a picture [batch, channels, height, width], and the result is added to it. */
  override forward(x: Tensor, context?: Tensor): Tensor {
    if (!this.groupNorm) return this.#attended(x, context ?? x);
    const tokens = toTokens(this.groupNorm.forward(x));
    return ops.add(toPicture(this.#attended(tokens, tokens), x), x);
  }

  #attended(x: Tensor, context: Tensor): Tensor {
    const heads = (states: Tensor) => ops.transpose(ops.unflatten(states, 2, [this.#heads, -1]), 1, 2);
    const [q, k, v] = [heads(this.toQ.forward(x)), heads(this.toK.forward(context)), heads(this.toV.forward(context))];
    const path = q.shape[3] > FUSED_WIDTH ? "unfused" : undefined;
    const attended = ops.flashAttention(q, k, v, { path });
    return this.toOut[0].forward(ops.flatten(ops.transpose(attended, 1, 2), 2));
  }
}

/** [batch, channels, height, width] → [batch, height · width, channels] */
const toTokens = (x: Tensor): Tensor => ops.transpose(ops.flatten(x, 2), 1, 2);

/** The inverse of {@link toTokens}. */
const toPicture = (tokens: Tensor, { shape }: Tensor): Tensor =>
  ops.reshape(ops.transpose(tokens, 1, 2), [shape[0], tokens.shape[2], shape[2], shape[3]]);

/** The first layer of a feed-forward: h · gelu(g), where h and g are the halves of a projection. */
class GatedProjection extends Module<[x: Tensor], Tensor> {
  readonly proj: Linear;

  constructor(width: number, inner: number, options: LayerOptions) {
    super();
    this.proj = new Linear(width, 2 * inner, options);
  }

  override forward(x: Tensor): Tensor {
    const [states, gates] = ops.chunk(this.proj.forward(x), 2, -1);
    return ops.mul(states, ops.gelu(gates));
  }
}

class FeedForward extends Module<[x: Tensor], Tensor> {
  /** Index 1 is dropout in `diffusers`. */
  readonly net: readonly [GatedProjection, Identity, Linear];

  constructor(width: number, options: LayerOptions) {
    super();
    this.net = [
      new GatedProjection(width, 4 * width, options),
      new Identity(),
      new Linear(4 * width, width, { ...options, residual: true }),
    ];
  }

  override forward(x: Tensor): Tensor {
    return this.net[2].forward(this.net[0].forward(x));
  }
}

/** Options of {@link SpatialTransformer}. */
export interface TransformerOptions extends LayerOptions {
  readonly width: number;
  /** The width of the context; without it, there is no attention to a context. */
  readonly contextWidth?: number | undefined;
  readonly heads: number;
  readonly layers: number;
  readonly groups: number;
  /** Whether the projections around the blocks are linear layers instead of 1×1 convolutions. */
  readonly linearProjection: boolean;
}

/** A block of self-attention, attention to the context, and a feed-forward. */
class BasicTransformerBlock extends Module<[x: Tensor, context?: Tensor], Tensor> {
  readonly norm1: LayerNorm;
  readonly attn1: Attention;
  readonly norm2: LayerNorm | null;
  readonly attn2: Attention | null;
  readonly norm3: LayerNorm;
  readonly ff: FeedForward;

  constructor({ width, contextWidth, heads, ...options }: TransformerOptions) {
    super();
    const layer = layerOptions(options);
    this.norm1 = new LayerNorm(width, layer);
    this.attn1 = new Attention({ ...layer, width, heads });
    this.norm2 = contextWidth === undefined ? null : new LayerNorm(width, layer);
    this.attn2 = contextWidth === undefined ? null : new Attention({ ...layer, width, contextWidth, heads });
    this.norm3 = new LayerNorm(width, layer);
    this.ff = new FeedForward(width, layer);
  }

  override forward(x: Tensor, context?: Tensor): Tensor {
    let states = ops.add(this.attn1.forward(this.norm1.forward(x)), x);
    if (this.attn2) states = ops.add(this.attn2.forward(this.norm2!.forward(states), context), states);
    return ops.add(this.ff.forward(this.norm3.forward(states)), states);
  }
}

/** Transformer blocks among the pixels of a picture. */
export class SpatialTransformer extends Module<[x: Tensor, context?: Tensor], Tensor> {
  readonly norm: GroupNorm;
  readonly projIn: Linear | Conv2d;
  readonly transformerBlocks: readonly BasicTransformerBlock[];
  readonly projOut: Linear | Conv2d;

  constructor(options: TransformerOptions) {
    super();
    const { width, layers, groups, linearProjection } = options;
    const layer = layerOptions(options);
    const projection = () => (linearProjection ? new Linear(width, width, layer) : new Conv2d(width, width, 1, layer));
    this.norm = new GroupNorm(groups, width, { ...layer, eps: 1e-6 });
    this.projIn = projection();
    this.transformerBlocks = Array.from({ length: layers }, () => new BasicTransformerBlock(options));
    this.projOut = projection();
  }

  override forward(x: Tensor, context?: Tensor): Tensor {
    const isLinear = this.projIn instanceof Linear;
    const normed = this.norm.forward(x);
    let tokens = isLinear ? this.projIn.forward(toTokens(normed)) : toTokens(this.projIn.forward(normed));
    for (const block of this.transformerBlocks) tokens = block.forward(tokens, context);
    const out = isLinear ? toPicture(this.projOut.forward(tokens), x) : this.projOut.forward(toPicture(tokens, x));
    return ops.add(out, x);
  }
}

/** Options of {@link ResnetBlock}. */
export interface ResnetOptions extends LayerOptions {
  readonly inputs: number;
  readonly outputs: number;
  /** The width of the embedding of timesteps; none in an autoencoder. */
  readonly timeWidth?: number | undefined;
  readonly groups: number;
  readonly eps: number;
}

/** Two convolutions and a shortcut. The embedding of the timestep is added between the convolutions. */
export class ResnetBlock extends Module<[x: Tensor, time?: Tensor], Tensor> {
  readonly norm1: GroupNorm;
  readonly conv1: Conv2d;
  readonly timeEmbProj: Linear | null;
  readonly norm2: GroupNorm;
  readonly conv2: Conv2d;
  readonly convShortcut: Conv2d | null;

  constructor({ inputs, outputs, timeWidth, groups, eps, ...options }: ResnetOptions) {
    super();
    const layer = layerOptions(options);
    this.norm1 = new GroupNorm(groups, inputs, { ...layer, eps });
    this.conv1 = new Conv2d(inputs, outputs, 3, { ...layer, padding: 1 });
    this.timeEmbProj = timeWidth === undefined ? null : new Linear(timeWidth, outputs, layer);
    this.norm2 = new GroupNorm(groups, outputs, { ...layer, eps });
    this.conv2 = new Conv2d(outputs, outputs, 3, { ...layer, padding: 1 });
    this.convShortcut = inputs === outputs ? null : new Conv2d(inputs, outputs, 1, layer);
  }

  override forward(x: Tensor, time?: Tensor): Tensor {
    let states = this.conv1.forward(ops.silu(this.norm1.forward(x)));
    if (this.timeEmbProj && time) {
      const added = this.timeEmbProj.forward(ops.silu(time));
      states = ops.add(states, ops.unsqueeze(ops.unsqueeze(added, 2), 3));
    }
    states = this.conv2.forward(ops.silu(this.norm2.forward(states)));
    return ops.add(this.convShortcut ? this.convShortcut.forward(x) : x, states);
  }
}

/** Halves the sides of a picture. */
export class Downsample extends Module<[x: Tensor], Tensor> {
  readonly conv: Conv2d;
  readonly #isPadded: boolean;

  /** @param isPadded whether all sides are padded, instead of only the right and the bottom */
  constructor(channels: number, isPadded: boolean, options: LayerOptions) {
    super();
    this.conv = new Conv2d(channels, channels, 3, { ...options, stride: 2, padding: isPadded ? 1 : 0 });
    this.#isPadded = isPadded;
  }

  override forward(x: Tensor): Tensor {
    return this.conv.forward(this.#isPadded ? x : ops.pad(x, [0, 1, 0, 1]));
  }
}

/** Doubles the sides of a picture, or resizes it to a given height and width. */
export class Upsample extends Module<[x: Tensor, size?: readonly number[]], Tensor> {
  readonly conv: Conv2d;

  constructor(channels: number, options: LayerOptions) {
    super();
    this.conv = new Conv2d(channels, channels, 3, { ...options, padding: 1 });
  }

  override forward(x: Tensor, size: readonly number[] = [2 * x.shape[2], 2 * x.shape[3]]): Tensor {
    return this.conv.forward(ops.interpolate(x, { size: [...size] }));
  }
}
