import { flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { linear } from "../../ops/matmul/linear.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Initializer, type LayerOptions, parameter, pytorchInitialization } from "./initialization.ts";
import { layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";

/** Options of {@link Linear}. */
export interface LinearOptions<D extends FloatDType = FloatDType> extends LayerOptions<D> {
  /** Whether the layer has a bias. Default true. */
  bias?: boolean | undefined;
  /** Whether the output is added to a residual stream, which selects another initializer. Default false. */
  residual?: boolean | undefined;
}

const linearParameters = parameters("Linear", {
  inputs: operand(size),
  outputs: operand(size),
  bias: optional(flag, true),
  residual: named(flag, false),
  ...layerParameters,
});

/**
 * Computes y = x weightᵀ + bias. PyTorch calls the sizes `in_features` and `out_features`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outputs, inputs] |
 * | `bias` | [outputs]; null without a bias |
 *
 * @example
 * new Linear(784, 10).forward(randn([32, 784])); // [32, 10]
 * new Linear(784, 10, false).bias; // null
 *
 * @throws {ArgumentError} for sizes below 1.
 */
export class Linear<out D extends FloatDType = FloatDType> extends Module<[x: Tensor], Tensor<D>> {
  readonly inputs: number;
  readonly outputs: number;
  readonly weight: Tensor<D>;
  readonly bias: Tensor<D> | null;

  constructor(inputs: number, outputs: number, ...options: Given<LinearOptions<D>, ["bias"]>);
  constructor(...values: unknown[]) {
    super();
    const { inputs, outputs, bias, residual, ...options } = linearParameters(values);
    const start = options.initialization ?? pytorchInitialization;
    const weight: Initializer = residual ? start.residual : start.weight;
    this.inputs = inputs;
    this.outputs = outputs;
    this.weight = parameter([outputs, inputs], weight, options as LayerOptions<D>);
    this.bias = bias ? parameter([outputs], start.bias(inputs), options as LayerOptions<D>) : null;
  }

  /** @param x [..., inputs] @returns [..., outputs] */
  override forward<R extends D = D>(x: Tensor): Tensor<NoInfer<R>>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    return linear(x as Tensor<D>, this.weight, this.bias);
  }

  /** @internal */
  override details(): string {
    return `${this.inputs}, ${this.outputs}${this.bias ? "" : ", bias: false"}`;
  }
}
