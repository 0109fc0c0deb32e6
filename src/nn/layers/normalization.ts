import { either, flag, listOf } from "../../core/kinds.ts";
import { type Given, type Kind, operand, optional, parameters } from "../../core/parameters.ts";
import { add } from "../../ops/elementwise/arithmetic.ts";
import { addLayerNorm, layerNorm } from "../../ops/normalization/layer_norm.ts";
import type { SumAndNorm } from "../../ops/normalization/normalize.ts";
import { addRmsNorm, rmsNorm } from "../../ops/normalization/rms_norm.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { hasHooks } from "./hooks.ts";
import { type LayerOptions, oneParameter, zeroParameter } from "./initialization.ts";
import { epsilon, layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";

/** The interface of {@link LayerNorm} and {@link RMSNorm}. */
export interface Normalization extends Module<[x: Tensor], Tensor> {
  /** Adds a residual and normalizes the sum in one pass: `sum` is x + residual, `out` its norm. */
  addForward(x: Tensor, residual: Tensor): SumAndNorm;
}

/** Adds and normalizes in two passes, so that the hooks of the norm are called. */
function sumAndForward(norm: Normalization, x: Tensor, residual: Tensor): SumAndNorm {
  const sum = add(x, residual);
  return { sum, out: norm.forward(sum) };
}

/** Options of {@link LayerNorm}. */
export interface LayerNormOptions<D extends FloatDType = FloatDType> extends LayerOptions<D> {
  /** Added to the variance. Default 1e-5. */
  eps?: number | undefined;
  /** Whether the layer has a weight and a bias. Default true. */
  elementwiseAffine?: boolean | undefined;
  /** Whether the layer has a bias; ignored without `elementwiseAffine`. Default true. */
  bias?: boolean | undefined;
}

const sizes: Kind<number[]> = listOf(size, "a whole number of at least 1, or a list of them");

const normalizedShape = operand({ ...either(size, sizes), expected: sizes.expected });
const layerNormParameters = parameters("LayerNorm", {
  normalizedShape,
  eps: optional(epsilon, 1e-5),
  elementwiseAffine: optional(flag, true),
  bias: optional(flag, true),
  ...layerParameters,
});

/**
 * Applies `layerNorm` over the last axes: (x − mean) / √(variance + eps) · weight + bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | `normalizedShape`; starts with ones; null without `elementwiseAffine` |
 * | `bias` | `normalizedShape`; starts with zeros; null without `elementwiseAffine` or `bias` |
 *
 * @param normalizedShape the sizes of the last axes; a number is the size of the last axis
 *
 * @example
 * new LayerNorm(768).forward(randn([2, 16, 768]));
 *
 * @throws {ArgumentError} for sizes below 1.
 */
export class LayerNorm<out D extends FloatDType = FloatDType>
  extends Module<[x: Tensor], Tensor<D>>
  implements Normalization
{
  readonly normalizedShape: Shape;
  readonly eps: number;
  readonly weight: Tensor<D> | null;
  readonly bias: Tensor<D> | null;

  constructor(
    normalizedShape: number | Shape,
    ...options: Given<LayerNormOptions<D>, ["eps", "elementwiseAffine", "bias"]>
  );
  constructor(...values: unknown[]) {
    super();
    const { normalizedShape, eps, elementwiseAffine, bias, ...options } = layerNormParameters(values);
    const shape = Object.freeze([normalizedShape].flat());
    this.normalizedShape = shape;
    this.eps = eps;
    this.weight = elementwiseAffine ? oneParameter(shape, options as LayerOptions<D>) : null;
    this.bias = elementwiseAffine && bias ? zeroParameter(shape, options as LayerOptions<D>) : null;
  }

  /** @param x [..., ...normalizedShape] @returns the same shape */
  override forward<R extends D = D>(x: Tensor): Tensor<NoInfer<R>>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    return layerNorm(x as Tensor<D>, this.options());
  }

  /** Adds a residual and normalizes the sum. @param x [..., ...normalizedShape] @param residual the same shape */
  addForward(x: Tensor, residual: Tensor): SumAndNorm {
    if (hasHooks(this)) return sumAndForward(this, x, residual);
    return addLayerNorm(x, residual, this.options());
  }

  private options() {
    const { weight, bias, eps, normalizedShape } = this;
    return { weight: weight ?? undefined, bias: bias ?? undefined, eps, normalizedShape };
  }

  /** @internal */
  override details(): string {
    const without = this.weight === null ? ", elementwiseAffine: false" : this.bias === null ? ", bias: false" : "";
    return `${this.normalizedShape.join(", ")}, eps: ${this.eps}${without}`;
  }
}

/** Options of {@link RMSNorm}. */
export interface RMSNormOptions<D extends FloatDType = FloatDType> extends LayerOptions<D> {
  /** Added to the mean square. Default 1e-6. */
  eps?: number | undefined;
  /** Whether the layer has a weight. Default true. */
  elementwiseAffine?: boolean | undefined;
}

const rmsNormParameters = parameters("RMSNorm", {
  normalizedShape,
  eps: optional(epsilon, 1e-6),
  elementwiseAffine: optional(flag, true),
  ...layerParameters,
});

/**
 * Applies `rmsNorm` over the last axes: x / √(mean(x²) + eps) · weight.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | `normalizedShape`; starts with ones; null without `elementwiseAffine` |
 *
 * @param normalizedShape the sizes of the last axes; a number is the size of the last axis
 *
 * @example
 * new RMSNorm(768).forward(randn([2, 16, 768]));
 *
 * @throws {ArgumentError} for sizes below 1.
 */
export class RMSNorm<out D extends FloatDType = FloatDType>
  extends Module<[x: Tensor], Tensor<D>>
  implements Normalization
{
  readonly normalizedShape: Shape;
  readonly eps: number;
  readonly weight: Tensor<D> | null;

  constructor(normalizedShape: number | Shape, ...options: Given<RMSNormOptions<D>, ["eps", "elementwiseAffine"]>);
  constructor(...values: unknown[]) {
    super();
    const { normalizedShape, eps, elementwiseAffine, ...options } = rmsNormParameters(values);
    const shape = Object.freeze([normalizedShape].flat());
    this.normalizedShape = shape;
    this.eps = eps;
    this.weight = elementwiseAffine ? oneParameter(shape, options as LayerOptions<D>) : null;
  }

  /** @param x [..., ...normalizedShape] @returns the same shape */
  override forward<R extends D = D>(x: Tensor): Tensor<NoInfer<R>>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    return rmsNorm(x as Tensor<D>, this.options());
  }

  /** Adds a residual and normalizes the sum. @param x [..., ...normalizedShape] @param residual the same shape */
  addForward(x: Tensor, residual: Tensor): SumAndNorm {
    if (hasHooks(this)) return sumAndForward(this, x, residual);
    return addRmsNorm(x, residual, this.options());
  }

  private options() {
    const { weight, eps, normalizedShape } = this;
    return { weight: weight ?? undefined, eps, normalizedShape };
  }

  /** @internal */
  override details(): string {
    return `${this.normalizedShape.join(", ")}, eps: ${this.eps}`;
  }
}
