/** Quantized weights: each function with valid arguments, in alphabetical order. */
import * as orchard from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

const { ones } = orchard;
const int4 = () => orchard.quantizeInt4(ones([2, 64]));
const ggml = () => orchard.quantizeGgml(ones([2, 64]), "q4_0");
const rounded = { groupSize: 32, symmetric: true, rounding: "leastSquares", scaleDType: "float16" };

const { nn } = orchard;
const made = (Class: new (...values: never[]) => unknown): Call =>
  ((...values: never[]) => new Class(...values)) as Call;

/** A state, which is not an object of options. */
const aState = () => Object.assign(Object.create(null) as object, { weight: ones([2, 64]) });

/** Layers and models with quantized weights. */
export const quantLayerCalls: Calls = {
  QuantizedLinear: [made(nn.QuantizedLinear), () => [ggml(), ones([2]), { precision: "fast" }]],
  QuantizedEmbedding: [made(nn.QuantizedEmbedding), () => [ggml()]],
  "QuantizedEmbedding.forward": [
    (x) => new nn.QuantizedEmbedding(ggml()).forward(x),
    () => [orchard.tensor([1], { dtype: "int64" })],
  ],
  Int4Linear: [made(nn.Int4Linear), () => [int4(), ones([2]), { dequantOnLoad: true }]],
  "Int4Linear.fromLinear": [
    nn.Int4Linear.fromLinear as Call,
    () => [new nn.Linear(64, 2), { groupSize: 32, dequantOnLoad: true }],
  ],
  quantizeModel: [
    nn.quantizeModel as Call,
    () => [
      new nn.Sequential(new nn.Linear(64, 2)),
      { format: "q4_0", include: "0", exclude: [], rounding: "nearest", precision: "fast" },
    ],
  ],
  calibrate: [nn.calibrate as Call, () => [new nn.Sequential(new nn.Linear(4, 2)), [ones([3, 4])], { products: true }]],
  loadQuantized: [nn.loadQuantized as Call, () => [new nn.Linear(64, 2, false), aState(), { precision: "fast" }]],
};

export const quantCalls: Calls = {
  dequantize: [orchard.dequantize as Call, () => [int4(), { dtype: "float16" }]],
  dequantizeGgml: [orchard.dequantizeGgml as Call, () => [ggml(), { dtype: "float16" }]],
  dequantizeInt4: [orchard.dequantizeInt4 as Call, () => [int4(), { dtype: "float16" }]],
  matmulGgml: [orchard.matmulGgml as Call, () => [ones([3, 64]), ggml(), { precision: "fast", bias: ones([2]) }]],
  matmulInt4: [orchard.matmulInt4 as Call, () => [ones([3, 64]), int4(), { precision: "fast", bias: ones([2]) }]],
  matmulPerGroup: [orchard.matmulPerGroup as Call, () => [ones([3, 64]), int4()]],
  matmulPerTensor: [orchard.matmulPerTensor as Call, () => [ones([3, 64]), orchard.quantizePerTensor(ones([2, 64]))]],
  matmulPremultiplied: [orchard.matmulPremultiplied as Call, () => [ones([3, 64]), int4()]],
  matmulSmooth: [
    orchard.matmulSmooth as Call,
    () => [ones([3, 64]), orchard.smoothQuantize(ones([2, 64]), ones([64]))],
  ],
  quantizePerTensor: [orchard.quantizePerTensor as Call, () => [ones([2, 64]), { bits: 4 }]],
  smoothQuantize: [orchard.smoothQuantize as Call, () => [ones([2, 64]), ones([64]), { alpha: 0.4 }]],
  quantize: [orchard.quantize as Call, () => [ones([2, 64]), { bits: 3, ...rounded }]],
  quantizeGgml: [orchard.quantizeGgml as Call, () => [ones([2, 64]), "q4_0"]],
  quantizedMatmul: [
    orchard.quantizedMatmul as Call,
    () => [ones([3, 64]), ggml(), { precision: "fast", bias: ones([2]) }],
  ],
  quantizedSwiglu: [
    orchard.quantizedSwiglu as Call,
    () => [
      ones([3, 64]),
      ggml(),
      ggml(),
      { precision: "fast", activation: "gelu", gateBias: ones([2]), upBias: ones([2]) },
    ],
  ],
  quantizedFromParts: [
    orchard.quantizedFromParts as Call,
    () => [{ bits: 4, groupSize: 64, symmetric: false }, { ...int4().parts }, { dtype: "float16" }],
  ],
  quantizeInt4: [orchard.quantizeInt4 as Call, () => [ones([2, 64]), rounded]],
};
