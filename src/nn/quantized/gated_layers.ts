/** Computes activation(gate(x)) · up(x) of a feed-forward, fused if both layers are quantized. */
import { needsGradient } from "../../autograd/record.ts";
import { countCodepath } from "../../backend/dispatch.ts";
import { getBackend } from "../../backend/policy.ts";
import { gatedProduct, quantizedSwiglu } from "../../quant/matmul/swiglu.ts";
import type { GateActivation } from "../../quant/primitive.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { hasHooks } from "../layers/hooks.ts";
import type { Linear } from "../layers/linear.ts";
import { QuantizedLinear } from "./linear.ts";
import { LoraLinear } from "./lora_linear.ts";

/** @internal A linear layer that may have quantized weights. */
export type ProductLayer = Linear | QuantizedLinear | LoraLinear;

/**
 * @internal Computes activation(gate(x)) · up(x): in one pass if both layers are quantized, else layer by layer.
 * `codepaths()` then reports the reason.
 *
 * @param x [..., inputs] @returns [..., outputs]
 */
export function gatedLayers(x: Tensor, gate: ProductLayer, up: ProductLayer, activation: GateActivation): Tensor {
  if (isQuantized(gate) || isQuantized(up)) {
    const reason = whyNoProduct("gate", gate) ?? whyNoProduct("up", up) ?? whyApartTogether(x, gate, up);
    if (reason === undefined) return together(x, gate as QuantizedLinear, up as QuantizedLinear, activation);
    countCodepath("quantizedSwiglu", getBackend(), `two layers: ${reason}`);
  }
  return gatedProduct(activation, gate.forward(x), up.forward(x));
}

/** @internal Whether the layer's weights are quantized, or those of the layer that a LoRA adapter wraps. */
export const isQuantized = (layer: ProductLayer): boolean =>
  (layer instanceof LoraLinear ? layer.base : layer) instanceof QuantizedLinear;

/** @internal Returns why a layer is not a plain product with quantized weights; undefined if it is one. */
export function whyNoProduct(name: string, layer: ProductLayer): string | undefined {
  if (!(layer instanceof QuantizedLinear)) return `${name} is a ${layer.constructor.name}`;
  if (hasHooks(layer)) return `${name} has hooks`;
  return layer.isProduct ? undefined : `${name} is a ${layer.constructor.name} that computes something else`;
}

function whyApartTogether(x: Tensor, gate: ProductLayer, up: ProductLayer): string | undefined {
  const [first, second] = [gate, up].map((layer) => (layer as QuantizedLinear).precision);
  if (first !== second) return `gate is ${first}, up is ${second}`;
  return needsGradient(x) ? "x needs a gradient, for which both products are kept" : undefined;
}

const together = (x: Tensor, gate: QuantizedLinear, up: QuantizedLinear, activation: GateActivation): Tensor =>
  quantizedSwiglu(x, gate.weight, up.weight, {
    precision: gate.precision,
    activation,
    gateBias: gate.bias,
    upBias: up.bias,
  });
