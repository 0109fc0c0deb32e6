/** Quantized weights. */
export {
  type DequantizeOptions,
  dequantize,
  dequantizeGgml,
  dequantizeInt4,
} from "./dequantize/dequantize.ts";
export type {
  AffineBits,
  AffineFormat,
  GgmlFormat,
  GroupSize,
  QuantizedFormat,
  ScaleDType,
} from "./formats.ts";
export {
  matmulGgml,
  matmulInt4,
  type ProductPrecision,
  type QuantizedMatmulOptions,
  quantizedMatmul,
} from "./matmul/matmul.ts";
export { type QuantizedSwigluOptions, quantizedSwiglu } from "./matmul/swiglu.ts";
export { type AffineOptions, type FromPartsOptions, quantizedFromParts } from "./parts.ts";
export type { GateActivation } from "./primitive.ts";
export {
  type QuantizeInt4Options,
  type QuantizeOptions,
  quantize,
  quantizeGgml,
  quantizeInt4,
} from "./quantize.ts";
export { type QuantizedParts, QuantizedTensor } from "./quantized_tensor.ts";
export {
  matmulPerGroup,
  matmulPerTensor,
  matmulPremultiplied,
  matmulSmooth,
  quantizePerTensor,
  smoothQuantize,
} from "./schemes/schemes.ts";
export { PerTensorWeights, SmoothWeights } from "./schemes/weights.ts";
