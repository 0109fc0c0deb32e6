/** Computes the queries, keys and values of attention from one input, fused if all three layers are quantized. */
import { needsGradient } from "../../autograd/record.ts";
import { countCodepath } from "../../backend/dispatch.ts";
import { getBackend } from "../../backend/policy.ts";
import { quantizedProjections, whyNotAtOnce } from "../../quant/matmul/projections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { isQuantized, type ProductLayer, whyNoProduct } from "./gated_layers.ts";
import type { QuantizedLinear } from "./linear.ts";

type Three<T> = readonly [query: T, key: T, value: T];

const names = ["query", "key", "value"] as const;

/**
 * @internal Computes the three projections: as one operation if all layers are quantized, else layer by layer.
 * `codepaths()` then reports the reason.
 *
 * @param x [..., inputs] @returns [..., outputs] of each
 */
export function projectedLayers(x: Tensor, layers: Three<ProductLayer>): Three<Tensor> {
  if (layers.some(isQuantized)) {
    const reason = layers.map((layer, at) => whyNoProduct(names[at], layer)).find(Boolean) ?? whyApart(x, layers);
    if (reason === undefined) {
      const all = layers as Three<QuantizedLinear>;
      return quantizedProjections(x, all, all[0].precision);
    }
    countCodepath("quantizedProjections", getBackend(), `three layers: ${reason}`);
  }
  return [layers[0].forward(x), layers[1].forward(x), layers[2].forward(x)];
}

function whyApart(x: Tensor, layers: Three<ProductLayer>): string | undefined {
  const all = layers as Three<QuantizedLinear>;
  const precisions = all.map(({ precision }) => precision);
  if (new Set(precisions).size > 1) return names.map((name, at) => `${name} is ${precisions[at]}`).join(", ");
  const biases = all.flatMap(({ bias }) => bias ?? []);
  if (needsGradient(x, ...biases)) return "x or a bias needs a gradient";
  return whyNotAtOnce(all, precisions[0]);
}
