import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { ArgumentError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { formatName, type ScaleDType, scaleDTypes } from "../formats.ts";
import { attributesOf, type WeightAttributes, weightInputs } from "../primitive.ts";
import { aQuantizedTensor, type QuantizedTensor } from "../quantized_tensor.ts";
import { dequantizeCpu } from "./dequantize.cpu.ts";
import { dequantizeMetal } from "./dequantize.metal.ts";
import { dequantizeReference } from "./dequantize.reference.ts";

const dequantizePrimitive = definePrimitive<WeightAttributes>({
  name: "dequantize",
  family: "quant",
  implementations: {
    metal: dequantizeMetal,
    cpu: dequantizeCpu,
    reference: dequantizeReference,
  },
});

/** Options of {@link dequantize}. */
export interface DequantizeOptions {
  /** The dtype of the result. Default the dtype of the quantized tensor. */
  dtype?: ScaleDType | undefined;
}

const declared = { w: operand(aQuantizedTensor), dtype: named(choice(...scaleDTypes)) } as const;
const dequantizeParameters = parameters("dequantize", declared);
const dequantizeInt4Parameters = parameters("dequantizeInt4", declared);
const dequantizeGgmlParameters = parameters("dequantizeGgml", declared);

/**
 * Returns the values of quantized weights as a tensor. It computes in float32, for blocks as the `gguf` package does,
 * and rounds once to the dtype. Affine: q · scale + bias, or (q − 2^(bits − 1)) · scale if the format is symmetric.
 *
 * @param w of any format
 * @returns a tensor of the shape of `w`, without a gradient
 *
 * @example
 * dequantize(quantize(randn([8, 64]), { bits: 8 })); // float32[8, 64]
 *
 * @throws {DisposedError}
 */
export function dequantize(w: QuantizedTensor, options?: DequantizeOptions): Tensor<ScaleDType>;
export function dequantize(...values: unknown[]): Tensor<ScaleDType> {
  const { w, dtype } = dequantizeParameters(values);
  return unpacked("dequantize", w, dtype);
}

/**
 * Returns the values of affine weights of 4 bits as a tensor, as {@link dequantize} does.
 *
 * @example
 * dequantizeInt4(quantizeInt4(randn([8, 64]))); // float32[8, 64]
 *
 * @throws {ArgumentError} `wrongFormat`, for any other format. @throws {DisposedError}
 */
export function dequantizeInt4(w: QuantizedTensor, options?: DequantizeOptions): Tensor<ScaleDType>;
export function dequantizeInt4(...values: unknown[]): Tensor<ScaleDType> {
  const { w, dtype } = dequantizeInt4Parameters(values);
  checkInt4("dequantizeInt4", w);
  return unpacked("dequantizeInt4", w, dtype);
}

/**
 * Returns the values of weights in GGML's blocks as a tensor, as {@link dequantize} does: bit-identical to the `gguf`
 * package.
 *
 * @example
 * dequantizeGgml(quantizeGgml(randn([8, 64]), "q8_0")); // float32[8, 64]
 *
 * @throws {ArgumentError} `wrongFormat`, for affine weights. @throws {DisposedError}
 */
export function dequantizeGgml(w: QuantizedTensor, options?: DequantizeOptions): Tensor<ScaleDType>;
export function dequantizeGgml(...values: unknown[]): Tensor<ScaleDType> {
  const { w, dtype } = dequantizeGgmlParameters(values);
  checkGgml("dequantizeGgml", w);
  return unpacked("dequantizeGgml", w, dtype);
}

const unpacked = (operation: string, w: QuantizedTensor, dtype: ScaleDType = w.dtype): Tensor<ScaleDType> =>
  execute(dequantizePrimitive, weightInputs(w), w.shape, dtype, attributesOf(w), operation);

/** Checks that weights are affine with 4 bits. @throws {ArgumentError} unless the weights are affine with 4 bits. */
export function checkInt4(operation: string, { format }: QuantizedTensor): void {
  if (typeof format === "object" && format.bits === 4) return;
  throw wrongFormat(operation, "affine weights of 4 bits", formatName(format));
}

/** Checks that weights are blocks. @throws {ArgumentError} unless the weights are blocks. */
export function checkGgml(operation: string, { format }: QuantizedTensor): void {
  if (typeof format === "string") return;
  throw wrongFormat(operation, "weights in GGML's blocks", formatName(format));
}

const wrongFormat = (operation: string, expected: string, got: string): ArgumentError =>
  new ArgumentError(operation, "wrongFormat", `expected ${expected}, got ${got}`);
