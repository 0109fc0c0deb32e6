/** PyTorch's transformer layers of encoders and decoders. */
import { aFunction, choice, either, flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { gelu } from "../../ops/activation/gelu.ts";
import { relu } from "../../ops/activation/relu.ts";
import { add } from "../../ops/elementwise/arithmetic.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { Dropout } from "../layers/dropout.ts";
import { type LayerOptions, noInitialization } from "../layers/initialization.ts";
import { epsilon, layerParameters, probability, size } from "../layers/kinds.ts";
import { Linear } from "../layers/linear.ts";
import { Module } from "../layers/module.ts";
import { LayerNorm } from "../layers/normalization.ts";
import type { QuantizedLinear } from "../quantized/linear.ts";
import { MultiheadAttention } from "./attention.ts";

/** The activation of a feed-forward: a name, or a function of a tensor. */
export type TransformerActivation = "relu" | "gelu" | ((x: Tensor) => Tensor);

/** Options of {@link TransformerEncoderLayer} and {@link TransformerDecoderLayer}, in PyTorch's order. */
export interface TransformerLayerOptions extends LayerOptions {
  /** The hidden size of the feed-forward. Default 2048. */
  dimFeedforward?: number | undefined;
  /** The dropout probability, also of attention weights. Default 0.1. */
  dropout?: number | undefined;
  /** The activation of the feed-forward. Default `"relu"`. */
  activation?: TransformerActivation | undefined;
  /** Added to variances in norms. Default 1e-5. */
  layerNormEps?: number | undefined;
  /** Whether operands are [batch, tokens, width] instead of [tokens, batch, width]. Default false. */
  batchFirst?: boolean | undefined;
  /**
   * Whether norms come before attention and feed-forward (pre-norm) instead of after the residual sums. Default false.
   */
  normFirst?: boolean | undefined;
  /** Whether linear layers and norms have biases. Default true. */
  bias?: boolean | undefined;
}

/** The order of options that are passed by position. */
export type LayerOrder = ["dimFeedforward", "dropout", "activation", "layerNormEps", "batchFirst", "normFirst", "bias"];

/** Optional inputs of {@link TransformerEncoderLayer}. */
export interface EncoderLayerInputs {
  /** As `attnMask` of {@link MultiheadAttention}: true leaves a key out. */
  srcMask?: Tensor | undefined;
  /** As `keyPaddingMask` of {@link MultiheadAttention}: true leaves a key out. */
  srcKeyPaddingMask?: Tensor | undefined;
  /** Whether each token attends only to itself and earlier tokens. Default false. */
  isCausal?: boolean | undefined;
}

/** Optional inputs of {@link TransformerDecoderLayer} and {@link TransformerDecoder}. */
export interface DecoderInputs {
  /** The `attnMask` of self-attention: true leaves a key out. */
  tgtMask?: Tensor | undefined;
  /** The `attnMask` of attention to the memory: true leaves a key out. */
  memoryMask?: Tensor | undefined;
  /** Padding in the target: true leaves a key out. */
  tgtKeyPaddingMask?: Tensor | undefined;
  /** Padding in the memory: true leaves a key out. */
  memoryKeyPaddingMask?: Tensor | undefined;
  /** Whether each target token attends only to target tokens up to its position. Default false. */
  tgtIsCausal?: boolean | undefined;
  /** Whether each target token attends only to memory tokens up to its position. Default false. */
  memoryIsCausal?: boolean | undefined;
}

/** @internal Parameters of a layer, except its width and heads. */
export const layerParts = {
  dimFeedforward: optional(size, 2048),
  dropout: optional(probability, 0.1),
  activation: optional(either(choice("relu", "gelu"), aFunction<(x: Tensor) => Tensor>()), "relu"),
  layerNormEps: optional(epsilon, 1e-5),
  batchFirst: optional(flag, false),
  normFirst: optional(flag, false),
  bias: optional(flag, true),
  ...layerParameters,
} as const;
const layerCall = (operation: string) =>
  parameters(operation, { dModel: operand(size), nhead: operand(size), ...layerParts });
type LayerCall = ReturnType<ReturnType<typeof layerCall>>;

/** Base class of encoder and decoder layers. */
abstract class TransformerLayer<Arguments extends readonly unknown[]> extends Module<Arguments, Tensor> {
  readonly normFirst: boolean;
  readonly self_attn: MultiheadAttention;
  readonly #call: LayerCall;

  constructor(call: LayerCall) {
    super();
    this.#call = call;
    this.normFirst = call.normFirst;
    this.self_attn = this.newAttention();
  }

  /** The two linear layers of the feed-forward, under PyTorch's names. */
  abstract readonly linear1: Linear | QuantizedLinear;
  abstract readonly linear2: Linear | QuantizedLinear;
  abstract readonly dropout: Dropout;

  protected newAttention(): MultiheadAttention {
    const { dModel, nhead, dropout, bias, batchFirst, dtype, generator, initialization } = this.#call;
    const layer = { dtype, generator, initialization };
    return new MultiheadAttention(dModel, nhead, { dropout, bias, batchFirst, ...layer });
  }

  protected newParts() {
    const { dModel, dimFeedforward, dropout, layerNormEps: eps, bias, dtype, generator, initialization } = this.#call;
    const options = { dtype, generator, initialization, bias };
    return {
      linear1: new Linear(dModel, dimFeedforward, options),
      dropout: new Dropout(dropout),
      linear2: new Linear(dimFeedforward, dModel, { ...options, residual: true }),
      newNorm: () => new LayerNorm(dModel, { ...options, eps }),
      newDropout: () => new Dropout(dropout),
    };
  }

  /** Computes x + part(norm(x)) if the layer is pre-norm, else norm(x + part(x)). */
  protected residual(x: Tensor, norm: LayerNorm, dropout: Dropout, part: (x: Tensor) => Tensor): Tensor {
    if (this.normFirst) return add(x, dropout.forward(part(norm.forward(x))));
    return norm.addForward(dropout.forward(part(x)), x).out;
  }

  protected feedForward(x: Tensor): Tensor {
    const { activation } = this.#call;
    const activate = typeof activation === "function" ? activation : { relu, gelu }[activation];
    return this.linear2.forward(this.dropout.forward(activate(this.linear1.forward(x))));
  }

  /** @internal Returns a layer with copies of this layer's weights. */
  copy(): this {
    const { dModel, nhead, ...options } = this.#call;
    const { dtype } = this.self_attn.out_proj.weight;
    const Layer = this.constructor as new (...values: unknown[]) => this;
    const copied = new Layer(dModel, nhead, { ...options, dtype, initialization: noInitialization });
    copied.loadStateDict(this.stateDict());
    return copied.train(this.training);
  }

  /** @internal */
  override details(): string {
    return this.normFirst ? "normFirst" : "";
  }
}

/**
 * Applies a layer of an encoder, PyTorch's `TransformerEncoderLayer`: self-attention and a feed-forward, each with a
 * residual connection and a norm. PyTorch's state dicts load. The submodules are `self_attn`
 * ({@link MultiheadAttention}), `linear1`, `linear2`, `norm1` and `norm2`.
 *
 * Source: A. Vaswani et al., "Attention is all you need", 2017.
 *
 * @example
 * const layer = new TransformerEncoderLayer(64, 8, { normFirst: true, activation: "gelu", batchFirst: true });
 * layer.forward(randn([2, 5, 64])); // [2, 5, 64]
 *
 * @throws {ArgumentError} as {@link MultiheadAttention}.
 */
export class TransformerEncoderLayer extends TransformerLayer<[src: Tensor, inputs?: EncoderLayerInputs]> {
  readonly linear1: Linear | QuantizedLinear;
  readonly dropout: Dropout;
  readonly linear2: Linear | QuantizedLinear;
  readonly norm1: LayerNorm;
  readonly norm2: LayerNorm;
  readonly dropout1: Dropout;
  readonly dropout2: Dropout;

  constructor(dModel: number, nhead: number, ...options: Given<TransformerLayerOptions, LayerOrder>);
  constructor(...values: unknown[]) {
    super(encoderLayerParameters(values));
    const { linear1, dropout, linear2, newNorm, newDropout } = this.newParts();
    this.linear1 = linear1;
    this.dropout = dropout;
    this.linear2 = linear2;
    this.norm1 = newNorm();
    this.norm2 = newNorm();
    this.dropout1 = newDropout();
    this.dropout2 = newDropout();
  }

  /** @param src shaped as the query of {@link MultiheadAttention} @throws as {@link MultiheadAttention} */
  override forward(src: Tensor, inputs?: EncoderLayerInputs): Tensor;
  override forward(...values: unknown[]): Tensor {
    const { src, srcMask: attnMask, srcKeyPaddingMask: keyPaddingMask, isCausal } = encoderForward(values);
    const inputs = { attnMask, keyPaddingMask, isCausal };
    return tidy(() => {
      const attended = this.residual(
        src,
        this.norm1,
        this.dropout1,
        (x) => this.self_attn.forward(x, x, x, inputs).output,
      );
      return this.residual(attended, this.norm2, this.dropout2, (x) => this.feedForward(x));
    });
  }
}
const encoderLayerParameters = layerCall("TransformerEncoderLayer");
const encoderForward = parameters("TransformerEncoderLayer.forward", {
  src: operand(aTensor),
  srcMask: named(aTensor),
  srcKeyPaddingMask: named(aTensor),
  isCausal: named(flag, false),
});

/**
 * Applies a layer of a decoder, PyTorch's `TransformerDecoderLayer`: self-attention, attention to an encoder's output
 * (the memory), and a feed-forward, each with a residual connection and a norm. PyTorch's state dicts load. The
 * submodules are `self_attn`, `multihead_attn`, `linear1`, `linear2`, `norm1`, `norm2` and `norm3`.
 *
 * @example
 * const layer = new TransformerDecoderLayer(64, 8, { batchFirst: true });
 * layer.forward(randn([2, 5, 64]), randn([2, 9, 64]), { tgtIsCausal: true }); // [2, 5, 64]
 *
 * @throws {ArgumentError} as {@link MultiheadAttention}.
 */
export class TransformerDecoderLayer extends TransformerLayer<[tgt: Tensor, memory: Tensor, inputs?: DecoderInputs]> {
  readonly multihead_attn: MultiheadAttention;
  readonly linear1: Linear | QuantizedLinear;
  readonly dropout: Dropout;
  readonly linear2: Linear | QuantizedLinear;
  readonly norm1: LayerNorm;
  readonly norm2: LayerNorm;
  readonly norm3: LayerNorm;
  readonly dropout1: Dropout;
  readonly dropout2: Dropout;
  readonly dropout3: Dropout;

  constructor(dModel: number, nhead: number, ...options: Given<TransformerLayerOptions, LayerOrder>);
  constructor(...values: unknown[]) {
    super(decoderLayerParameters(values));
    this.multihead_attn = this.newAttention();
    const { linear1, dropout, linear2, newNorm, newDropout } = this.newParts();
    this.linear1 = linear1;
    this.dropout = dropout;
    this.linear2 = linear2;
    this.norm1 = newNorm();
    this.norm2 = newNorm();
    this.norm3 = newNorm();
    this.dropout1 = newDropout();
    this.dropout2 = newDropout();
    this.dropout3 = newDropout();
  }

  /**
   * @param tgt shaped as the query of {@link MultiheadAttention}
   * @param memory an encoder's output, shaped as the key of {@link MultiheadAttention}
   *
   * @throws as {@link MultiheadAttention}
   */
  override forward(tgt: Tensor, memory: Tensor, inputs?: DecoderInputs): Tensor;
  override forward(...values: unknown[]): Tensor {
    const { tgt, memory, ...given } = decoderForward(values);
    const masks = { attnMask: given.tgtMask, keyPaddingMask: given.tgtKeyPaddingMask, isCausal: given.tgtIsCausal };
    const other = {
      attnMask: given.memoryMask,
      keyPaddingMask: given.memoryKeyPaddingMask,
      isCausal: given.memoryIsCausal,
    };
    return tidy(() => {
      const first = this.residual(tgt, this.norm1, this.dropout1, (x) => this.self_attn.forward(x, x, x, masks).output);
      const second = this.residual(
        first,
        this.norm2,
        this.dropout2,
        (x) => this.multihead_attn.forward(x, memory, memory, other).output,
      );
      return this.residual(second, this.norm3, this.dropout3, (x) => this.feedForward(x));
    });
  }
}
const decoderLayerParameters = layerCall("TransformerDecoderLayer");

/** @internal The parameters of a decoder's `forward`. */
export const decoderInputs = {
  tgt: operand(aTensor),
  memory: operand(aTensor),
  tgtMask: named(aTensor),
  memoryMask: named(aTensor),
  tgtKeyPaddingMask: named(aTensor),
  memoryKeyPaddingMask: named(aTensor),
  tgtIsCausal: named(flag, false),
  memoryIsCausal: named(flag, false),
} as const;
const decoderForward = parameters("TransformerDecoderLayer.forward", decoderInputs);
