import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { FileFormatError } from "../core/errors.ts";
import { aPath, choice, either, someBytes } from "../core/kinds.ts";
import { named, operand, parameters } from "../core/parameters.ts";
import { withFileErrors } from "../io/file_errors.ts";
import type { GgmlFormat, QuantizedFormat } from "../quant/formats.ts";
import { aPrecision, type ProductPrecision } from "../quant/matmul/matmul.ts";
import { type AffineOptions, aFormat } from "../quant/parts.ts";
import { buildModel } from "./build.ts";
import type { Graph } from "./graph.ts";
import { OnnxModel, type OnnxValue } from "./model.ts";
import type { OnnxFloat } from "./one_dtype.ts";
import { readOutline } from "./outline.ts";
import { readModelProto, type ValueProto } from "./schema.ts";
import type { Storing } from "./storing.ts";
import { elementTypeName, folderOf, OpenFiles } from "./tensors.ts";

/** Options of {@link loadOnnx}. */
export interface LoadOnnxOptions {
  /**
   * The dtype of floating-point weights and activations: float16 or bfloat16 to save memory, float64 to check
   * gradients. Inputs of other floating-point dtypes are converted, and outputs in half precision are converted to the
   * types that the file declares. Scales of quantized tensors, and numbers from which sizes are computed, keep their
   * dtype. Default: the dtypes in the file.
   */
  readonly dtype?: OnnxFloat | undefined;
  /**
   * The format to which constant matrices of `MatMul` and `Gemm`, and constant tables from which `Gather` takes rows,
   * are quantized, one at a time. Matrices whose number of columns doesn't fit the format keep their dtype. Default:
   * no quantization.
   */
  readonly quantize?: GgmlFormat | QuantizedFormat | AffineOptions | undefined;
  /** Precision of products with quantized weights, as in {@link quantizedMatmul}. Default `"exact"`. */
  readonly precision?: ProductPrecision | undefined;
}

/**
 * Loads an ONNX model: any graph of the operators in docs/onnx.md, of operator sets 7 and newer. Tensors in other files
 * are read from the model's folder.
 *
 * @param source a path, or the bytes of a file without external data
 * @param options `dtype` and `quantize` convert one weight at a time; quantized weights don't train
 * @returns a module whose weights train; see {@link OnnxModel}
 *
 * @example
 * const model = await io.loadOnnx("classifier.onnx", { dtype: "bfloat16" });
 * console.log(model.inputs); // [{ name: "image", type: "float", shape: ["batch", 3, 224, 224] }]
 *
 * @throws {FileError} if the file can't be read.
 * @throws {FileFormatError} if it is damaged, or has unsupported operators or types, which the message lists.
 */
export async function loadOnnx(source: string | Uint8Array, options?: LoadOnnxOptions): Promise<OnnxModel>;
export async function loadOnnx(...values: unknown[]): Promise<OnnxModel> {
  const { source, dtype, quantize, precision } = loadParameters(values);
  const isPath = typeof source === "string";
  const path = isPath ? source : "the model";
  using files = new OpenFiles();
  const proto = await readModelProto(isPath ? contentOf(path, files) : source, path);
  const storing: Storing = { dtype, format: quantize, precision, quantized: new Map() };
  const folder = isPath ? folderOf(resolve(path)) : undefined;
  const graph = buildModel(proto, { path, folder, files: isPath ? files : undefined }, storing);
  const inputs = (proto.graph?.inputs ?? []).filter(({ name }) => graph.inputs.includes(name)).map(describedValue);
  const outputs = (proto.graph?.outputs ?? []).map(describedValue);
  return new OnnxModel({
    graph,
    inputs,
    outputs,
    trainable: trainableNames(graph),
    dtype,
    quantized: storing.quantized,
    metadata: new Map(proto.metadata.map(({ key, value }) => [key, value])),
  });
}

/** Returns the file's bytes: of a regular file without the elements of large tensors, which are read one at a time. */
function contentOf(path: string, files: OpenFiles): Uint8Array {
  return withFileErrors("loadOnnx", path, () => {
    if (!statSync(path).isFile()) return readFileSync(path);
    try {
      return readOutline(files.open(path));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new FileFormatError("loadOnnx", "damaged", path, `it is not an ONNX model: ${error.message}`);
    }
  });
}

const loadParameters = parameters("loadOnnx", {
  source: operand(either(aPath, someBytes)),
  dtype: named(choice("float64", "float32", "float16", "bfloat16")),
  quantize: named(aFormat),
  precision: named(aPrecision, "exact"),
});

function describedValue({ name, type }: ValueProto): OnnxValue {
  const tensor = type?.tensor;
  const dims = tensor?.shape?.dims.map(({ value, parameter }) => {
    if (value !== undefined && value >= 0) return value; // some exporters write −1 for an unknown size
    return parameter === "" ? null : parameter;
  });
  return { name, type: tensor ? elementTypeName(tensor.elementType) : undefined, shape: dims };
}

/** Float inputs that are not weights: statistics, scales of quantization and sizes. */
const notTrained: Readonly<Record<string, readonly number[]>> = {
  BatchNormalization: [3, 4],
  Clip: [1, 2],
  DequantizeLinear: [1],
  Dropout: [1],
  MatMulNBits: [2],
  Pad: [2],
  Pow: [1],
  QLinearConv: [1, 4, 6],
  QLinearMatMul: [1, 4, 6],
  QuantizeLinear: [1],
  Range: [0, 1, 2],
  Resize: [1, 2],
  Upsample: [1],
};

/** Tensors with more than one element; exporters also store constants, such as the 2 of a square, as tensors. */
function trainableNames(graph: Graph): Set<string> {
  const excluded = new Set(
    graph.steps.flatMap(({ operator, inputs }) => (notTrained[operator] ?? []).map((at) => inputs[at] ?? "")),
  );
  return new Set([...graph.constants].filter(([name, x]) => x.size > 1 && !excluded.has(name)).map(([name]) => name));
}
