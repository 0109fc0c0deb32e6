import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { choice, either, instanceOf, listOf, text } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters, reading, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { dequantize } from "../../quant/dequantize/dequantize.ts";
import { formatName, type GgmlFormat, type QuantizedFormat, valuesOfBlock } from "../../quant/formats.ts";
import { aPrecision, type ProductPrecision } from "../../quant/matmul/matmul.ts";
import { type AffineOptions, aFormat } from "../../quant/parts.ts";
import { quantize, quantizeGgml } from "../../quant/quantize.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { Embedding } from "../layers/embedding.ts";
import { Linear } from "../layers/linear.ts";
import { Module } from "../layers/module.ts";
import { joinPath, type Slot, slotsOf } from "../layers/slots.ts";
import { type LoadReport, loadInto } from "../layers/state_dict.ts";
import { type Calibration, productsFor } from "./calibration/calibrate.ts";
import { roundByErrors } from "./calibration/gptq.ts";
import { QuantizedEmbedding } from "./embedding.ts";
import { QuantizedLinear } from "./linear.ts";
import { formatReport } from "./report.ts";

/** Selects layers: the path of a layer or of a module above it, a regular expression for paths, or a list of both. */
export type LayerNames = string | RegExp | readonly (string | RegExp)[];

/** How {@link quantizeModel} rounds weights in affine formats. */
export type ModelRounding = "nearest" | "leastSquares" | "gptq";

/** Options of {@link quantizeModel}. */
export interface QuantizeModelOptions {
  /** The name of a block format, or `{ bits, groupSize, symmetric? }`. */
  format: GgmlFormat | QuantizedFormat | AffineOptions;
  /** Layers to quantize. Default: every {@link Linear} and {@link Embedding} but `positionEmbedding`. */
  include?: LayerNames | undefined;
  /** Layers that stay unquantized. Default: none. */
  exclude?: LayerNames | undefined;
  /** The result of `calibrate` with `products: true`, which `"gptq"` requires. */
  calibration?: Calibration | undefined;
  /**
   * How weights in affine formats are rounded. By default, `"gptq"` rounds the linear layers in `calibration`. Other
   * layers, even with `"gptq"`, are rounded by `"leastSquares"` from 4 bits on and by `"nearest"` below. These defaults
   * gave the lowest held-out losses.
   */
  rounding?: ModelRounding | undefined;
  /** Precision of products: `"fast"` lets x be rounded to 8 bits. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
}

/** A layer in the report of {@link quantizeModel}. */
export interface QuantizedLayer {
  /** The layer's path in the model. */
  readonly name: string;
  /** The shape of the layer's weight. */
  readonly shape: readonly number[];
  /** The format after quantization; null if the layer was left unquantized. */
  readonly format: string | null;
  /** Bytes of the weight before quantization. */
  readonly bytesBefore: number;
  /** Bytes of the weight after quantization. */
  readonly bytesAfter: number;
  /** √(Σ (W − Ŵ)² / Σ W²); 0 if the layer was left unquantized. */
  readonly relativeError: number;
}

/** The report of {@link quantizeModel}. It prints as a table. */
export interface QuantizationReport {
  /** All linear layers and embeddings. */
  readonly layers: readonly QuantizedLayer[];
  /** Bytes of all parameters and buffers of the model before quantization. */
  readonly bytesBefore: number;
  /** Bytes after quantization. */
  readonly bytesAfter: number;
}

const patterns: Kind<(string | RegExp)[]> = (() => {
  const one = either<[Kind<string | RegExp>, Kind<string | RegExp>]>(text, instanceOf(RegExp, "a pattern"));
  const list = listOf(one, "a list of paths and patterns");
  return {
    expected: "the path of a layer, a pattern, or a list of both",
    parse(value, operation, name) {
      const single = one.parse(value, operation, name);
      return single === undefined ? list.parse(value, operation, name) : [single];
    },
  };
})();

const quantizeModelParameters = parameters("quantizeModel", {
  model: operand(instanceOf(Module, "a module")),
  format: required(aFormat),
  include: named(patterns),
  exclude: named(patterns, []),
  calibration: named<Calibration | undefined>({
    expected: "the result of calibrate()",
    parse: (value) => (value instanceof Map ? value : undefined),
  }),
  rounding: named(choice("nearest", "leastSquares", "gptq")),
  precision: named(aPrecision, "exact"),
});

/**
 * Replaces the linear layers and embeddings of a model in place by quantized ones. Tied weights stay tied.
 *
 * If a layer's width is not a multiple of a super-block of 256 values, the layer takes llama.cpp's substitute in blocks
 * of 32: iq4_nl for q2_K and q3_K, q5_0 for q4_K, q5_1 for q5_K, and q8_0 for q6_K. A layer that the substitute does
 * not fit either is left unquantized, and the report says so.
 *
 * @param model a GPT, a Llama, or any module. The quantized weights are frozen, so create a new optimizer afterwards
 *
 * @example
 * const report = quantizeModel(model, { format: "q4_K", exclude: ["head"] });
 * console.log(`${report}`); // a table: format, bytes before and after, and error of each layer
 * await io.saveGguf("model.gguf", model.quantizedState());
 *
 * @throws {ArgumentError} `noProducts`, for a calibration without products; `noCalibration`, for `"gptq"` without a
 * calibration; `unknownLayer`, for a path in `include` or `exclude` that no layer has; `notFinite`, `scaleOverflow`,
 * for weights that can't be quantized. In these cases no layer is replaced. @throws {ShapeError} `shapesDiffer`, for
 * the calibration of another model.
 */
export function quantizeModel(model: Module, options: QuantizeModelOptions): QuantizationReport;
export function quantizeModel(...values: unknown[]): QuantizationReport {
  const { model, format, include, exclude, calibration, rounding, precision } = quantizeModelParameters(values);
  if (rounding === "gptq" && calibration === undefined)
    throw new ArgumentError(
      "quantizeModel",
      "noCalibration",
      'rounding: "gptq" requires a calibration, got none; pass the result of calibrate() with { products: true }',
    );
  const slots = layersIn(model);
  const names = [...slots.keys()];
  const isIncluded = matcher(names, include ?? [/^(?!.*positionEmbedding$)/]);
  const isExcluded = matcher(names, exclude);
  const before = bytesOf(model);
  const weights = new Map<Tensor, QuantizedTensor>();
  const made = (name: string, { weight }: Layer, layerFormat: QuantizedFormat): QuantizedTensor => {
    if (typeof layerFormat === "string") return quantizeGgml(weight, layerFormat);
    const recorded = calibration?.get(name);
    const usual = layerFormat.bits < 4 ? "nearest" : "leastSquares";
    if (rounding === "nearest" || rounding === "leastSquares") return quantize(weight, { ...layerFormat, rounding });
    if (recorded === undefined) return quantize(weight, { ...layerFormat, rounding: usual });
    return roundByErrors(weight, productsFor("quantizeModel", name, recorded, weight.shape[1]), layerFormat);
  };
  const layers = [...slots].map(([name, [{ value }]]) => {
    const chosen = isIncluded(name) && !isExcluded(name) ? formatFor(format, value.weight.shape[1]) : undefined;
    return chosen === undefined
      ? leftAlone(name, value.weight)
      : reportOf(
          name,
          value.weight,
          quantizedOnce(weights, value.weight, () => made(name, value, chosen)),
        );
  });
  for (const [name, slot] of slots) {
    const weight = layers.some((layer) => layer.name === name && layer.format !== null)
      ? weights.get(slot[0].value.weight)
      : undefined;
    if (weight !== undefined) replaceAll(slot, weight, precision);
  }
  const report = { layers, bytesBefore: before, bytesAfter: bytesOf(model) };
  return Object.defineProperty(report, "toString", { value: () => formatReport(report), enumerable: false });
}

/** Options of {@link loadQuantized}. */
export interface LoadQuantizedOptions {
  /** Precision of products: `"fast"` lets x be rounded to 8 bits. Default `"exact"`. */
  precision?: ProductPrecision | undefined;
}

const loadQuantizedParameters = parameters("loadQuantized", {
  model: operand(instanceOf(Module, "a module")),
  weights: operand<Readonly<Record<string, Tensor | QuantizedTensor>>>({
    expected: "an object of tensors by name",
    parse: (value) =>
      typeof value === "object" && value !== null && !Array.isArray(value) && !Tensor.isTensor(value)
        ? (value as Readonly<Record<string, Tensor | QuantizedTensor>>)
        : undefined,
  }),
  precision: named(aPrecision, "exact"),
});

/**
 * Loads weights, some of them quantized. Layers with quantized weights are replaced in place by quantized layers that
 * share the memory of the given weights; other weights are copied. If anything does not match, nothing is loaded.
 *
 * @param weights by the model's names, such as the result of `io.loadWeights`
 * @returns the missing and the unexpected names, which are always empty
 *
 * @example
 * const model = new GPT(sizes);
 * loadQuantized(model, io.loadWeights("model.safetensors"));
 *
 * @throws {StateDictError} listing missing names, unexpected names, and names whose shape or dtype differs.
 */
export function loadQuantized(
  model: Module,
  weights: Readonly<Record<string, Tensor | QuantizedTensor>>,
  options?: LoadQuantizedOptions,
): LoadReport;
export function loadQuantized(...values: unknown[]): LoadReport {
  const { model, weights, precision } = loadQuantizedParameters(values);
  const slots = layersIn(model);
  const found = new Map<readonly LayerSlot[], QuantizedTensor>();
  const replaced = new Map<Tensor, QuantizedTensor>();
  const taken = new Set<string>();
  const entries = reading("loadQuantized", () => Object.entries(weights));
  for (const [name, value] of entries) {
    const slot = QuantizedTensor.isQuantized(value) ? slots.get(name.replace(/\.?weight$/, "")) : undefined;
    if (slot === undefined || !sameSizes(slot[0].value.weight, value as QuantizedTensor)) continue;
    found.set(slot, value as QuantizedTensor);
    replaced.set(slot[0].value.weight, value as QuantizedTensor);
    taken.add(name);
  }
  for (const slot of slots.values()) {
    const tied = replaced.get(slot[0].value.weight);
    if (tied !== undefined && !found.has(slot)) found.set(slot, tied);
  }
  const targets = new Map<Tensor, string[]>();
  for (const [name, tensor] of allNames(model)) {
    if (replaced.has(tensor)) continue;
    targets.set(tensor, [...(targets.get(tensor) ?? []), name]);
  }
  const others = Object.fromEntries(entries.filter(([name]) => !taken.has(name)));
  const report = loadInto(model.constructor.name, targets, others, { convert: true });
  for (const [slot, weight] of found) replaceAll(slot, weight, precision);
  return report;
}

type Layer = Linear | Embedding;
type LayerSlot = Slot<Layer>;

/** Maps the first path of each layer to all slots that hold this layer. */
function layersIn(model: Module): Map<string, readonly [LayerSlot, ...LayerSlot[]]> {
  const found = new Map<string, [LayerSlot, ...LayerSlot[]]>();
  const byLayer = new Map<Layer, [LayerSlot, ...LayerSlot[]]>();
  const visit = (prefix: string, module: Module, above: readonly Module[]): void => {
    if (above.includes(module)) return;
    for (const slot of slotsOf(module)) {
      const name = joinPath(prefix, slot.name);
      const { value } = slot;
      if (isLayer(value)) {
        const entry = { ...slot, name, value };
        const known = byLayer.get(value);
        if (known !== undefined) known.push(entry);
        else {
          byLayer.set(value, [entry]);
          found.set(name, byLayer.get(value)!);
        }
      } else if (value instanceof Module) visit(name, value, [...above, module]);
    }
  };
  visit("", model, []);
  return found;
}

/** Exactly these classes: a subclass may use its weight in another way. */
const isLayer = (value: unknown): value is Layer =>
  (value instanceof Linear && value.constructor === Linear) ||
  (value instanceof Embedding && value.constructor === Embedding);

/** Yields every tensor in a module's state under each of its names. */
function* allNames(model: Module, prefix = "", above: readonly Module[] = []): Generator<readonly [string, Tensor]> {
  if (above.includes(model)) return;
  for (const { name, value } of slotsOf(model)) {
    const path = joinPath(prefix, name);
    if (value instanceof Module) yield* allNames(value, path, [...above, model]);
    else if (value instanceof Tensor && value.isLeaf) yield [path, value];
  }
}

const sameSizes = ({ shape }: Tensor, stored: QuantizedTensor): boolean =>
  stored.rank === 2 && stored.shape[0] === shape[0] && stored.shape[1] === shape[1];

function replaceAll(slots: readonly LayerSlot[], weight: QuantizedTensor, precision: ProductPrecision): void {
  const [{ value }] = tupleOf(slots, 1);
  const layer = value instanceof Linear ? new QuantizedLinear(weight, value.bias) : new QuantizedEmbedding(weight);
  layer.precision = precision;
  layer.training = value.training;
  for (const { replace } of slots as readonly Slot[]) replace(layer);
}

/**
 * Returns a predicate for layers that are selected by their path, the path of a module above, or a regular expression.
 */
function matcher(names: readonly string[], given: readonly (string | RegExp)[]): (name: string) => boolean {
  const matches = (pattern: string | RegExp, name: string): boolean =>
    typeof pattern === "string"
      ? name === pattern || name.startsWith(`${pattern}.`)
      : new RegExp(pattern.source, pattern.flags).test(name);
  const unknown = given.find((pattern) => typeof pattern === "string" && !names.some((name) => matches(pattern, name)));
  if (unknown !== undefined)
    throw new ArgumentError(
      "quantizeModel",
      "unknownLayer",
      `expected the path of a layer, got ${JSON.stringify(unknown)}; the layers are ${names.join(", ")}`,
    );
  return (name) => given.some((pattern) => matches(pattern, name));
}

/** llama.cpp's substitutes for super-block formats (`tensor_type_fallback` in llama-quant.cpp). */
const substitutes: Partial<Record<GgmlFormat, GgmlFormat>> = {
  q2_K: "iq4_nl",
  q3_K: "iq4_nl",
  q4_K: "q5_0",
  q5_K: "q5_1",
  q6_K: "q8_0",
};

/**
 * @internal Returns the format, or its substitute if rows of `columns` values are not whole blocks; undefined if
 * neither fits.
 */
export function formatFor(format: QuantizedFormat, columns: number): QuantizedFormat | undefined {
  const other = typeof format === "string" ? substitutes[format] : undefined;
  return [format, other].find((candidate) => candidate !== undefined && columns % valuesOfBlock(candidate) === 0);
}

function quantizedOnce(
  weights: Map<Tensor, QuantizedTensor>,
  weight: Tensor,
  make: () => QuantizedTensor,
): QuantizedTensor {
  const shared = weights.get(weight) ?? make();
  weights.set(weight, shared);
  return shared;
}

function reportOf(name: string, weight: Tensor, quantized: QuantizedTensor): QuantizedLayer {
  return {
    name,
    shape: [...weight.shape],
    format: formatName(quantized.format),
    bytesBefore: byteLengthOf(weight.shape, weight.dtype),
    bytesAfter: quantized.byteLength,
    relativeError: relativeError(weight, quantized),
  };
}

function leftAlone(name: string, { shape, dtype }: Tensor): QuantizedLayer {
  const bytes = byteLengthOf(shape, dtype);
  return { name, shape: [...shape], format: null, bytesBefore: bytes, bytesAfter: bytes, relativeError: 0 };
}

/** Computes the relative error in float64, on the host. */
function relativeError(weight: Tensor, quantized: QuantizedTensor): number {
  const [exact, got] = tupleOf(
    tidy(() =>
      noGrad(
        () => [toDType(weight, "float32").dataSync(), dequantize(quantized, { dtype: "float32" }).dataSync()] as const,
      ),
    ),
    2,
  );
  let [error, size] = [0, 0];
  for (let i = 0; i < exact.length; i++) {
    error += (exact[i] - got[i]) ** 2;
    size += exact[i] ** 2;
  }
  return size === 0 ? 0 : Math.sqrt(error / size);
}

/** Bytes of parameters and buffers; a shared tensor counts once. */
const bytesOf = (model: Module): number =>
  [...model.namedParameters().values(), ...model.namedBuffers().values()].reduce(
    (sum, { shape, dtype }) => sum + byteLengthOf(shape, dtype),
    0,
  );
