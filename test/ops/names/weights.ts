/** The names of distributions, and those of quantized weights. */

import { dequantize, quantize, quantizedMatmul, quantizedSwiglu, quantizeGgml } from "../../../src/index.ts";
import { type GgmlFormat, ggmlFormats } from "../../../src/quant/formats.ts";
import { gateActivations, packings } from "../../../src/quant/primitive.ts";
import { drawn, run, type Walk } from "./walk.ts";

const distributions = {
  bits: { kind: "bits" },
  uniform: { kind: "uniform", low: -1, high: 3 },
  normal: { kind: "normal", mean: 1, deviation: 2 },
  integers: { kind: "integers", least: -4n, choices: 9n },
} as const;

export const distribution: readonly Walk[] = [
  {
    names: Object.keys(distributions),
    operands: () => [],
    compute: (name) => {
      const own = distributions[name as keyof typeof distributions];
      const dtype = name === "bits" ? "uint32" : "float32";
      return run("random", [], [50], dtype, { key: [3, 5], counter: [0, 0, 0, 0], distribution: own, dtype });
    },
  },
];

const weights = (label: string) => drawn(label, [3, 256], { low: -1, high: 3 });
const packed = (name: string, label = "weights") =>
  (ggmlFormats as readonly string[]).includes(name)
    ? quantizeGgml(weights(label), name as GgmlFormat)
    : quantize(weights(label), { bits: 4, groupSize: 32, symmetric: name === "symmetric" });

/** Compares dequantized values, and a product with them. */
export const packing: readonly Walk[] = [
  {
    names: packings.names,
    operands: () => [weights("weights")],
    compute: (name) => {
      const own = packed(name);
      return [dequantize(own), quantizedMatmul(drawn("x", [2, 256], { low: -1, high: 1 }), own)];
    },
  },
];

export const gateActivation: readonly Walk[] = [
  {
    names: gateActivations.names,
    operands: () => [drawn("x", [2, 256], { low: -0.1, high: 0.1 })],
    compute: (activation, [x]) =>
      quantizedSwiglu(x, packed("q8_0", "gate"), packed("q8_0", "up"), { activation: activation as "silu" }),
  },
];
