/** Stacks of encoder and decoder layers, and PyTorch's Transformer, which combines both. */
import { noGrad } from "../../autograd/modes.ts";
import { either, flag, instanceOf, nothing } from "../../core/kinds.ts";
import { type Given, named, operand, optional, type Parsed, parameters } from "../../core/parameters.ts";
import { copyInto } from "../../ops/copy/copy.ts";
import { full } from "../../ops/creation/full.ts";
import { triu } from "../../ops/indexing/triangle.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { type LayerOptions, layerOptions, xavierUniform } from "../layers/initialization.ts";
import { floatDType, layerCount, size } from "../layers/kinds.ts";
import { Module } from "../layers/module.ts";
import { LayerNorm } from "../layers/normalization.ts";
import {
  type DecoderInputs,
  decoderInputs,
  layerParts,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
} from "./layers.ts";

/** A norm after the last layer, or none. */
const aNorm = either(instanceOf<Module<[x: Tensor], Tensor>>(Module, "a module such as LayerNorm"), nothing);

/** Optional inputs of {@link TransformerEncoder}. */
export interface EncoderInputs {
  /** As `attnMask` of {@link MultiheadAttention}: true leaves a key out. */
  mask?: Tensor | undefined;
  /** As `keyPaddingMask` of {@link MultiheadAttention}: true leaves a key out. */
  srcKeyPaddingMask?: Tensor | undefined;
  /** Whether each token attends only to itself and earlier tokens. Default false. */
  isCausal?: boolean | undefined;
}

/** Options of {@link TransformerEncoder} and {@link TransformerDecoder}. */
export interface TransformerStackOptions {
  /** A module after the last layer. Default: none. */
  norm?: Module<[x: Tensor], Tensor> | null | undefined;
}

const stackParts = { numLayers: operand(layerCount), norm: optional(aNorm, null) } as const;

/** Base class of stacks: copies of a layer, and a norm after the last one. */
abstract class TransformerStack<
  Layer extends TransformerEncoderLayer | TransformerDecoderLayer,
  Arguments extends readonly unknown[],
> extends Module<Arguments, Tensor> {
  readonly layers: readonly Layer[];
  readonly norm: Module<[x: Tensor], Tensor> | null;

  constructor(layer: Layer, { numLayers, norm }: Parsed<typeof stackParts>) {
    super();
    this.layers = Array.from({ length: numLayers }, () => layer.copy() as Layer);
    this.norm = norm;
  }

  /** Applies the layers one after the other, then the norm. */
  protected through(x: Tensor, step: (x: Tensor, layer: Layer) => Tensor): Tensor {
    return tidy(() => {
      const out = this.layers.reduce(step, x);
      return this.norm ? this.norm.forward(out) : out;
    });
  }
}

/**
 * Applies copies of an encoder layer one after the other, then a norm: PyTorch's `TransformerEncoder`. As in PyTorch,
 * all copies start with the weights of the given layer, which is not part of the module itself.
 *
 * @example
 * const layer = new TransformerEncoderLayer(64, 8, { batchFirst: true });
 * const encoder = new TransformerEncoder(layer, 6, new LayerNorm(64));
 * encoder.forward(randn([2, 5, 64]), { isCausal: true }); // [2, 5, 64]
 *
 * @throws {ArgumentError} for a number of layers below 1, and an `encoderLayer` of another class.
 */
export class TransformerEncoder extends TransformerStack<
  TransformerEncoderLayer,
  [src: Tensor, inputs?: EncoderInputs]
> {
  constructor(
    encoderLayer: TransformerEncoderLayer,
    numLayers: number,
    ...options: Given<TransformerStackOptions, ["norm"]>
  );
  constructor(...values: unknown[]) {
    const { encoderLayer, ...others } = encoderParameters(values);
    super(encoderLayer, others);
  }

  /** @param src as for {@link TransformerEncoderLayer} @throws as {@link TransformerEncoderLayer} */
  override forward(src: Tensor, inputs?: EncoderInputs): Tensor;
  override forward(...values: unknown[]): Tensor {
    const { src, mask: srcMask, ...others } = encoderForward(values);
    return this.through(src, (x, layer) => layer.forward(x, { srcMask, ...others }));
  }
}
const encoderParameters = parameters("TransformerEncoder", {
  encoderLayer: operand(instanceOf(TransformerEncoderLayer, "a TransformerEncoderLayer")),
  ...stackParts,
});
const encoderForward = parameters("TransformerEncoder.forward", {
  src: operand(aTensor),
  mask: named(aTensor),
  srcKeyPaddingMask: named(aTensor),
  isCausal: named(flag, false),
});

/**
 * Applies copies of a decoder layer one after the other, then a norm: PyTorch's `TransformerDecoder`.
 *
 * @example
 * const layer = new TransformerDecoderLayer(64, 8, { batchFirst: true });
 * const decoder = new TransformerDecoder(layer, 6, new LayerNorm(64));
 * decoder.forward(randn([2, 5, 64]), randn([2, 9, 64]), { tgtIsCausal: true }); // [2, 5, 64]
 *
 * @throws {ArgumentError} for a number of layers below 1, and a `decoderLayer` of another class.
 */
export class TransformerDecoder extends TransformerStack<
  TransformerDecoderLayer,
  [tgt: Tensor, memory: Tensor, inputs?: DecoderInputs]
> {
  constructor(
    decoderLayer: TransformerDecoderLayer,
    numLayers: number,
    ...options: Given<TransformerStackOptions, ["norm"]>
  );
  constructor(...values: unknown[]) {
    const { decoderLayer, ...others } = decoderParameters(values);
    super(decoderLayer, others);
  }

  /** @param tgt @param memory as for {@link TransformerDecoderLayer} @throws as {@link TransformerDecoderLayer} */
  override forward(tgt: Tensor, memory: Tensor, inputs?: DecoderInputs): Tensor;
  override forward(...values: unknown[]): Tensor {
    const { tgt, memory, ...inputs } = decoderForward(values);
    return this.through(tgt, (x, layer) => layer.forward(x, memory, inputs));
  }
}
const decoderParameters = parameters("TransformerDecoder", {
  decoderLayer: operand(instanceOf(TransformerDecoderLayer, "a TransformerDecoderLayer")),
  ...stackParts,
});
const decoderForward = parameters("TransformerDecoder.forward", decoderInputs);

/** Options of {@link Transformer}, in PyTorch's order. */
export interface TransformerOptions extends TransformerLayerOptions {
  /** The width of tokens. Default 512. */
  dModel?: number | undefined;
  /** The number of heads. Default 8. */
  nhead?: number | undefined;
  /** The number of encoder layers. Default 6. */
  numEncoderLayers?: number | undefined;
  /** The number of decoder layers. Default 6. */
  numDecoderLayers?: number | undefined;
}

/** Optional inputs of {@link Transformer}. */
export interface TransformerInputs extends DecoderInputs {
  /** The `attnMask` of the source's self-attention: true leaves a key out. */
  srcMask?: Tensor | undefined;
  /** Padding in the source: true leaves a key out. */
  srcKeyPaddingMask?: Tensor | undefined;
  /** Whether each source token attends only to source tokens up to its position. Default false. */
  srcIsCausal?: boolean | undefined;
}

/**
 * Applies an encoder and a decoder, each with a norm at the end: PyTorch's `Transformer`. All matrices are initialized
 * by Xavier's uniform distribution.
 *
 * @example
 * const model = new Transformer({ dModel: 64, nhead: 4, numEncoderLayers: 2, numDecoderLayers: 2, batchFirst: true });
 * model.forward(randn([2, 9, 64]), randn([2, 5, 64]), { tgtIsCausal: true }); // [2, 5, 64]
 *
 * @throws {ArgumentError} as {@link MultiheadAttention}.
 */
export class Transformer extends Module<[src: Tensor, tgt: Tensor, inputs?: TransformerInputs], Tensor> {
  readonly encoder: TransformerEncoder;
  readonly decoder: TransformerDecoder;

  constructor(...options: Given<TransformerOptions, TransformerOrder>);
  constructor(...values: unknown[]) {
    super();
    const { dModel, nhead, numEncoderLayers, numDecoderLayers, ...layer } = transformerParameters(values);
    const norm = () => new LayerNorm(dModel, { ...layerOptions(layer), eps: layer.layerNormEps, bias: layer.bias });
    const encoderLayer = new TransformerEncoderLayer(dModel, nhead, layer);
    this.encoder = new TransformerEncoder(encoderLayer, numEncoderLayers, norm());
    const decoderLayer = new TransformerDecoderLayer(dModel, nhead, layer);
    this.decoder = new TransformerDecoder(decoderLayer, numDecoderLayers, norm());
    if (!layer.initialization) startMatrices(this, layer);
  }

  /**
   * @param src as for {@link TransformerEncoder}
   * @param tgt as for {@link TransformerDecoder}
   *
   * @throws as {@link MultiheadAttention}
   */
  override forward(src: Tensor, tgt: Tensor, inputs?: TransformerInputs): Tensor;
  override forward(...values: unknown[]): Tensor {
    const { src, tgt, srcMask: mask, srcKeyPaddingMask, srcIsCausal: isCausal, ...others } = transformerForward(values);
    return tidy(() =>
      this.decoder.forward(tgt, this.encoder.forward(src, { mask, srcKeyPaddingMask, isCausal }), others),
    );
  }

  /**
   * Returns a causal mask [size, size] to add to scores: −∞ where a key comes after its query, else 0.
   *
   * @example
   * Transformer.generateSquareSubsequentMask(2); // [[0, -Infinity], [0, 0]]
   */
  static generateSquareSubsequentMask(size: number, options?: { dtype?: FloatDType | undefined }): Tensor;
  static generateSquareSubsequentMask(...values: unknown[]): Tensor {
    const { size, dtype } = maskParameters(values);
    return triu(full([size, size], Number.NEGATIVE_INFINITY, { dtype }), 1);
  }
}

type TransformerOrder = [
  ...["dModel", "nhead", "numEncoderLayers", "numDecoderLayers", "dimFeedforward", "dropout", "activation"],
  ...["layerNormEps", "batchFirst", "normFirst", "bias"],
];

/** Initializes all tensors with two or more axes by Xavier's uniform distribution, as PyTorch's `Transformer` does. */
function startMatrices(model: Module, options: LayerOptions): void {
  noGrad(() =>
    tidy(() => {
      for (const parameter of model.parameters())
        if (parameter.rank > 1)
          copyInto(parameter, xavierUniform(parameter.shape, { ...options, dtype: parameter.dtype as FloatDType }));
    }),
  );
}

const transformerParameters = parameters("Transformer", {
  dModel: optional(size, 512),
  nhead: optional(size, 8),
  numEncoderLayers: optional(layerCount, 6),
  numDecoderLayers: optional(layerCount, 6),
  ...layerParts,
});
const { memory: _memory, tgt: _tgt, ...decoderOptions } = decoderInputs;
const transformerForward = parameters("Transformer.forward", {
  src: operand(aTensor),
  tgt: operand(aTensor),
  srcMask: named(aTensor),
  srcKeyPaddingMask: named(aTensor),
  srcIsCausal: named(flag, false),
  ...decoderOptions,
});
const maskParameters = parameters("Transformer.generateSquareSubsequentMask", {
  size: operand(size),
  dtype: named(floatDType, "float32"),
});
