import { underName } from "../../backend/dispatch.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, unlisted } from "../../core/parameters.ts";
import { bilinear } from "../../ops/matmul/bilinear.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LayerOptions, parameter, pytorchInitialization } from "./initialization.ts";
import { layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";

/** Options of {@link Bilinear}. */
export interface BilinearOptions extends LayerOptions {
  /** Whether the layer has a bias. Default true. */
  bias?: boolean | undefined;
}

/**
 * Applies `bilinear` to the last axes: yₒ = x₁ᵀ weightₒ x₂ + biasₒ.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outputs, inputs1, inputs2] |
 * | `bias` | [outputs]; null without a bias |
 *
 * @example
 * new Bilinear(4, 6, 3).forward(randn([2, 4]), randn([2, 6])); // [2, 3]
 *
 * @throws {ArgumentError} for sizes below 1.
 */
export class Bilinear extends Module<[x1: Tensor, x2: Tensor], Tensor> {
  readonly inputs1: number;
  readonly inputs2: number;
  readonly outputs: number;
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(inputs1: number, inputs2: number, outputs: number, ...options: Given<BilinearOptions, ["bias"]>);
  constructor(...values: unknown[]) {
    super();
    const { inputs1, inputs2, outputs, bias, ...options } = bilinearParameters(values);
    const { initialization: given } = options;
    const fallback = pytorchInitialization.bias(inputs1);
    this.inputs1 = inputs1;
    this.inputs2 = inputs2;
    this.outputs = outputs;
    this.weight = parameter([outputs, inputs1, inputs2], given?.weight ?? fallback, options);
    this.bias = bias ? parameter([outputs], given?.bias(inputs1) ?? fallback, options) : null;
  }

  /** @param x1 [..., inputs1] @param x2 [..., inputs2], with the same leading axes @returns [..., outputs] */
  override forward(...values: [x1: Tensor, x2: Tensor]): Tensor {
    const { x1, x2 } = forwardParameters(values);
    return underName("Bilinear", () => bilinear(x1, x2, this.weight, this.bias ?? undefined));
  }

  /** @internal */
  override details(): string {
    return `${this.inputs1}, ${this.inputs2}, ${this.outputs}${this.bias ? "" : ", bias: false"}`;
  }
}
const forwardParameters = unlisted("Bilinear", { x1: operand(aTensor), x2: operand(aTensor) });
const bilinearParameters = parameters("Bilinear", {
  inputs1: operand(size),
  inputs2: operand(size),
  outputs: operand(size),
  bias: optional(flag, true),
  ...layerParameters,
});
