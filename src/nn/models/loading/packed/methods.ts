/** Selects the reader of a folder's quantized weights by its `config.json`. */
import type { SafetensorsReader } from "../../../../io/safetensors/file.ts";
import { quantizationKeys } from "../config_fields.ts";
import type { Settings } from "../settings.ts";
import { safetensorsSource, type WeightSource } from "../source.ts";
import { awq } from "./awq.ts";
import { fp8 } from "./fp8.ts";
import { gptq } from "./gptq.ts";
import { mlx } from "./mlx.ts";
import { mxfp4 } from "./mxfp4.ts";
import { type Packing, packedSource } from "./source.ts";

const methods: Readonly<Record<string, Packing>> = { mlx, gptq, awq, fp8, mxfp4 };

/**
 * Opens the weights of a folder. Packed weights are read as one quantized tensor.
 *
 * @throws {ArgumentError} `unknownQuantization` for an unsupported method, naming it.
 */
export function sourceOf(file: SafetensorsReader, config: Settings): WeightSource {
  const key = quantizationKeys.find((key) => config.get(key) !== undefined);
  if (key === undefined) return safetensorsSource(file);
  const settings = config.inner(key)!;
  const method = methodOf(key, settings);
  const packing = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (packing !== undefined) return packedSource(file, packing(file, settings));
  throw config.refused(
    "unknownQuantization",
    `expected weights that are not quantized, or quantized by ${Object.keys(methods).join(", ")}, got "${method}"; ` +
      'load the original model with { quantize: "q4_K" }, or a GGUF file of it; or dequantize it in transformers: ' +
      "model.dequantize(), then model.save_pretrained(folder)",
  );
}

/**
 * MLX writes `bits` and `group_size` without a method, under one key or two. The format `float-quantized` of
 * compressed-tensors has the layout of fp8.
 */
function methodOf(key: (typeof quantizationKeys)[number], settings: Settings): string {
  const said = settings.textIfAny("quant_method")?.toLowerCase();
  if (said === "compressed-tensors" && settings.get("format") === "float-quantized") return "fp8";
  if (said !== undefined) return said;
  if (key === "compression_config") return "compressed-tensors";
  if (key === "quantization" || settings.get("bits") !== undefined) return "mlx";
  return "an unnamed method";
}
