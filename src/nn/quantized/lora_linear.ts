import { noGrad } from "../../autograd/modes.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add, mul } from "../../ops/elementwise/arithmetic.ts";
import { matmul } from "../../ops/matmul/matmul.ts";
import { dequantize } from "../../quant/dequantize/dequantize.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import type { Generator } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";
import { Dropout } from "../layers/dropout.ts";
import { type Initialization, normalOf, pytorchInitialization } from "../layers/initialization.ts";
import { Linear } from "../layers/linear.ts";
import { Module } from "../layers/module.ts";
import type { QuantizedLinear } from "./linear.ts";

/** Options of {@link LoraLinear}. */
export interface LoraLinearOptions {
  readonly rank: number;
  /** Factor of the low-rank product. */
  readonly scale: number;
  readonly dropout: number;
  readonly generator?: Generator | undefined;
}

/** `up` starts with zeros, so that training starts from the base layer's results. */
const zeros: Initialization = { ...pytorchInitialization, weight: normalOf(0) };

/**
 * Computes y = base(x) + scale · up(down(dropout(x))): a frozen layer, plus a trained low-rank product in float32.
 *
 * | parameter | shape |
 * |---|---|
 * | `base. …` | those of the wrapped layer, frozen |
 * | `down.weight` | [rank, inputs]; PEFT's `lora_A` |
 * | `up.weight` | [outputs, rank]; PEFT's `lora_B`; starts with zeros |
 *
 * Source: E. Hu et al., "LoRA: low-rank adaptation of large language models", 2021.
 */
export class LoraLinear extends Module<[x: Tensor], Tensor> {
  readonly inputs: number;
  readonly outputs: number;
  readonly scale: number;
  readonly base: Linear | QuantizedLinear;
  readonly down: Linear;
  readonly up: Linear;
  readonly dropout: Dropout;

  /** @internal Created by `lora`. */
  constructor(base: Linear | QuantizedLinear, { rank, scale, dropout, generator }: LoraLinearOptions) {
    super();
    this.inputs = base.inputs;
    this.outputs = base.outputs;
    this.scale = scale;
    this.base = base;
    this.down = new Linear(base.inputs, rank, { bias: false, generator });
    this.up = new Linear(rank, base.outputs, { bias: false, initialization: zeros });
    this.dropout = new Dropout(dropout);
  }

  /** The bias of the wrapped layer. */
  get bias(): Tensor | null {
    return this.base.bias;
  }

  /** @param x [..., inputs] @returns [..., outputs] */
  override forward(x: Tensor): Tensor {
    const out = this.base.forward(x);
    const wide = toDType(this.dropout.forward(x), "float32");
    const added = mul(this.up.forward(this.down.forward(wide)), this.scale);
    return add(out, out.dtype === "float32" ? added : toDType(added, out.dtype));
  }

  /** @internal Returns a plain layer with the merged weights; in float32 if the base layer is quantized. */
  merged(): Linear {
    const { weight } = this.base;
    const dtype = QuantizedTensor.isQuantized(weight) ? "float32" : weight.dtype;
    const sum: Tensor = keep(
      tidy(() =>
        noGrad(() => {
          const base = QuantizedTensor.isQuantized(weight) ? dequantize(weight) : weight;
          const added = mul(matmul(this.up.weight, this.down.weight), this.scale);
          return toDType(add(toDType(base, "float32"), added), dtype);
        }),
      ),
    );
    const layer = new Linear(this.inputs, this.outputs, { bias: false, initialization: zeros });
    Reflect.set(layer, "weight", sum);
    Reflect.set(layer, "bias", this.base.bias);
    layer.training = this.training;
    return layer;
  }

  /** @internal */
  override details(): string {
    return `${this.inputs}, ${this.outputs}, rank: ${this.down.outputs}, scale: ${this.scale}`;
  }
}
