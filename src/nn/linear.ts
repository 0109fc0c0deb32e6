import { linear } from "../ops/matmul/linear.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { checkCounts } from "./checks.ts";
import { type Initializer, type LayerOptions, parameter, pytorchInitialization } from "./initialization.ts";
import { Module } from "./module.ts";

/** Options of {@link Linear}. */
export interface LinearOptions extends LayerOptions {
  /** Whether there is a bias. Default true. */
  bias?: boolean | undefined;
  /** Whether its output is added to the residual stream: selects the initializer. Default false. */
  residual?: boolean | undefined;
}

/**
 * y = x weightᵀ + bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outputs, inputs] |
 * | `bias` | [outputs]; null without |
 *
 * @example
 * new Linear(784, 10).forward(randn([32, 784])); // [32, 10]
 *
 * @throws {ArgumentError} for sizes below 1.
 */
export class Linear extends Module<[x: Tensor], Tensor> {
  readonly inputs: number;
  readonly outputs: number;
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(inputs: number, outputs: number, { bias = true, residual = false, ...options }: LinearOptions = {}) {
    super();
    checkCounts("Linear", { inputs, outputs });
    const start = options.initialization ?? pytorchInitialization;
    const weight: Initializer = residual ? start.residual : start.weight;
    this.inputs = inputs;
    this.outputs = outputs;
    this.weight = parameter([outputs, inputs], weight, options);
    this.bias = bias ? parameter([outputs], start.bias(inputs), options) : null;
  }

  /** @param x [..., inputs] @returns [..., outputs] */
  override forward(x: Tensor): Tensor {
    return linear(x, this.weight, this.bias);
  }

  /** @internal */
  override details(): string {
    return `${this.inputs}, ${this.outputs}${this.bias ? "" : ", bias: false"}`;
  }
}
