/**
 * Plans loading before any weight is read: which tensor of a file becomes which parameter, and how much memory this
 * takes.
 */
import { blockFormat, formatName, type QuantizedFormat } from "../../../quant/formats.ts";
import type { ProductPrecision } from "../../../quant/matmul/matmul.ts";
import { bytesOf, type DType, type FloatDType, isDType, isFloat } from "../../../tensor/dtype.ts";
import { elementCount, formatShape, type Shape, sameShape } from "../../../tensor/shape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { Embedding } from "../../layers/embedding.ts";
import { Linear } from "../../layers/linear.ts";
import type { Module } from "../../layers/module.ts";
import { type Differences, StateDictError } from "../../layers/state_dict.ts";
import { formatFor } from "../../quantized/model.ts";
import type { Change, Place } from "./names.ts";
import type { StoredTensor, WeightSource } from "./source.ts";

/** How weights are stored in memory. */
export interface Storing {
  /** The dtype of activations and of weights that are not quantized. */
  readonly dtype: FloatDType;
  readonly quantize: QuantizedFormat | undefined;
  /** Precision of products with quantized weights. */
  readonly precision: ProductPrecision;
}

/** A parameter and its source. */
export interface Step {
  /** The layer's path in the model. */
  readonly path: string;
  /** Which parameter of the layer. */
  readonly end: "weight" | "bias";
  /** The tensor's name in the file. */
  readonly name: string;
  /** The file's tensor. */
  readonly stored: StoredTensor;
  /** How the tensor is converted to the parameter. */
  readonly change: Change | undefined;
  /** The parameter's shape. */
  readonly shape: Shape;
  /** The dtype or format of the parameter. */
  readonly becomes: DType | QuantizedFormat;
  /** Whether the parameter is mapped from the file. */
  readonly isMapped: boolean;
  /** Bytes that are allocated for the parameter. */
  readonly allocated: number;
  /** Bytes of temporary memory during conversion. */
  readonly temporary: number;
}

/** A model to load. */
export interface Loadable extends Module {
  readonly description: { readonly architecture: string };
  /** @internal The number of elements of keys and values that a cache keeps for each token. */
  readonly cacheElements: number;
  /** @internal Whether the token embedding is also the output head. */
  readonly usesWholeEmbedding: boolean;
}

/** Ignores constant tables of older files, tables that llama.cpp precomputes, and weights of vision parts. */
const isIgnored = (name: string): boolean =>
  [
    /\.attn\.(attention\.)?((masked_)?bias|causal_mask)$|\.rotary_emb\.inv_freq$/,
    /^rope_(freqs|factors_\w+)\.weight$/,
    /(vision|audio)_tower\.|multi_modal_projector\.|vision_model\.|^model\.visual\.|embed_(vision|audio)\./,
    // multi-token prediction, and indexers of layers that use the choice of an earlier one
    /^mtp\.|\.indexer\./,
    // buffers of PyTorch's modules, and counts of a profiler
    /(^|\.)(position_ids|token_type_ids|inv_freq|(cos|sin)_cached|masked_bias|num_batches_tracked|total_(ops|params))$/,
  ].some((pattern) => pattern.test(name));

/** Smaller tensors are read: that costs less than mapping them. */
const LEAST_MAPPED_BYTES = 65_536;

/** @throws {StateDictError} listing missing names, unexpected names, and names with a different shape. */
export function planOf(model: Loadable, places: readonly Place[], source: WeightSource, storing: Storing): Step[] {
  const modules = model.namedModules();
  const used = new Set<string>();
  const differences = { missing: [], different: [] };
  const steps = places.flatMap((place) => stepsOf(modules.get(place.path)!, place, source, storing, differences));
  for (const { name } of steps) used.add(name);
  const seen = new Set([...used, ...differences.different.map(({ name }) => name)]);
  // With tied weights, a checkpoint may also have the head's weight, which equals the embedding's.
  const tied = places.flatMap(({ names }) => names.map((name) => `${name}.weight`));
  const isNeutral = (name: string) => tied.includes(name) || (source.isNeutral?.(name) ?? false);
  const unexpected = source.names.filter((name) => !seen.has(name) && !isIgnored(name) && !isNeutral(name));
  const found = { ...differences, unexpected };
  if (found.missing.length + found.different.length + unexpected.length > 0)
    throw new StateDictError("loadModel", model.description.architecture, found);
  return steps;
}

interface Found {
  readonly missing: string[];
  readonly different: Differences["different"][number][];
}

function stepsOf(module: Module, place: Place, source: WeightSource, storing: Storing, found: Found): Step[] {
  const parameters = module as unknown as Readonly<Record<"weight" | "bias", Tensor | null | undefined>>;
  return (["weight", "bias"] as const).flatMap((end): Step[] => {
    const parameter = parameters[end];
    if (!parameter) return [];
    const name = candidates(place, end).find((each) => source.has(each));
    if (name === undefined) {
      found.missing.push(`${place.names[0]}.${end}`);
      return [];
    }
    const stored = source.describe(name);
    const isChanged =
      end === "weight" || (!place.plainBias && ["heads", "part", "reshaped"].includes(place.change?.kind ?? ""));
    const change = isChanged ? changeOf(stored, place.change) : undefined;
    const got =
      change?.kind === "heads" && stored.format !== null
        ? undefined
        : shapeAfter(stored.shape, change, parameter.shape);
    const isReadable = stored.format !== null || (stored.dtype !== null && isFloat(stored.dtype));
    if (!isReadable || !got || !sameShape(got, parameter.shape)) {
      const text = { got: `${stored.type}${formatShape(stored.shape)}`, expected: expectedShape(parameter, change) };
      found.different.push({ name, got: describing(text.got), expected: describing(text.expected) });
      return [];
    }
    return [stepOf({ path: place.path, end, name, stored, change, shape: parameter.shape }, module, storing)];
  });
}

/** The possible names of a tensor. The oldest checkpoints of BERT name the parameters of norms as TensorFlow does. */
function candidates({ path, names }: Place, end: "weight" | "bias"): string[] {
  const ends = /[nN]orm$/.test(path)
    ? [end, end === "weight" ? "gamma" : "beta"]
    : [...(path.endsWith(".correction") ? ["e_score_correction_bias"] : []), end];
  const dotted = names.flatMap((name) => ends.map((suffix) => `${name}.${suffix}`));
  // GPT-OSS's experts and sinks: the weight has the name of the layer
  return [...dotted, ...names.map((name) => (end === "weight" ? name : `${name}_bias`))];
}

/**
 * Returns a prefix of all names, such as `model.` of a module that contains the model, if more places have a tensor
 * without it; else an empty text.
 */
export function prefixIn(source: WeightSource, places: readonly Place[]): string {
  const segments = source.names[0]?.split(".").slice(0, -1) ?? [];
  const prefixes = ["", ...segments.map((_, at) => `${segments.slice(0, at + 1).join(".")}.`)];
  const count = (prefix: string) =>
    places.filter((place) => candidates(place, "weight").some((name) => source.has(prefix + name))).length;
  return prefixes
    .filter((prefix) => source.names.every((name) => name.startsWith(prefix)))
    .reduce((best, prefix) => (count(prefix) > count(best) ? prefix : best));
}

const describing = (text: string) => ({ describe: () => text });

function expectedShape({ shape }: Tensor, change: Change | undefined): string {
  if (change?.kind === "transposed") return formatShape([...shape].reverse());
  return change?.kind === "part" ? `${formatShape(shape)} for each expert` : formatShape(shape);
}

/** Packed weights are always [outputs, inputs], even if the checkpoint's plain weights are transposed. */
function changeOf(stored: StoredTensor, change: Change | undefined): Change | undefined {
  if (stored.format === null && !stored.isComputed) return change;
  if (change?.kind === "part" && change.transposed) return { ...change, transposed: false };
  return change?.kind === "transposed" ? undefined : change;
}

function shapeAfter(shape: Shape, change: Change | undefined, wanted: Shape): Shape | undefined {
  if (change?.kind === "reshaped") return elementCount(shape) === elementCount(wanted) ? wanted : shape;
  if (change?.kind === "transposed") return shape.toReversed();
  if (change?.kind === "after") return [shape[0] - change.first, ...shape.slice(1)];
  if (change?.kind === "heads") {
    const groups = shape[0] / (change.of * change.headWidth);
    return Number.isInteger(groups) ? [groups * change.count * change.headWidth, ...shape.slice(1)] : undefined;
  }
  if (change?.kind !== "part") return shape;
  const stacked = change.joined === undefined ? shape : [change.joined, shape[0] / change.joined, ...shape.slice(1)];
  if (change.index >= stacked[0] || stacked.length < 2) return undefined;
  const matrix = stacked.slice(1);
  const [rows = 0, ...columns] = change.transposed && stacked.length === 3 ? matrix.reverse() : matrix;
  return [change.alternate === undefined && change.half === undefined ? rows : rows / 2, ...columns];
}

type Target = Pick<Step, "path" | "end" | "name" | "stored" | "change" | "shape">;

function stepOf(target: Target, module: Module, storing: Storing): Step {
  const { stored, change, shape } = target;
  const size = stored.byteLength / partsOf(target);
  const becomes = stored.format ?? wantedOf(target, module, storing);
  const isSame = becomes === (stored.format ?? stored.dtype);
  const isPart =
    change?.kind === "part" && !change.transposed && change.alternate === undefined && change.half === undefined;
  const isView = change === undefined || isPart || change.kind === "rows" || change.kind === "reshaped";
  const isMapped = isSame && !stored.isComputed && isView;
  const count = elementCount(shape);
  const isRead = isMapped && stored.byteLength < LEAST_MAPPED_BYTES;
  const made = bytesIn(becomes, count);
  const isUnpacked = stored.isComputed || (!isSame && !isDType(becomes));
  return {
    ...target,
    becomes,
    isMapped: isMapped && !isRead,
    allocated: isMapped ? (isRead ? size : 0) : made,
    // converted on the host, from a copy of all values in float32 and one in the file's dtype
    temporary: isUnpacked ? 4 * count + size : 0,
  };
}

/** Returns the dtype or format that a plain tensor is converted to. */
function wantedOf(
  { path, end, stored, change, shape }: Target,
  module: Module,
  { dtype, quantize }: Storing,
): DType | QuantizedFormat {
  // Norms are computed in float32, so their float32 weights are kept unconverted.
  const isNorm = /Norm$/.test(path);
  if (path.endsWith(".correction")) return "float32";
  if (isNorm && dtype !== "float64" && (change?.kind === "plusOne" || stored.dtype === "float32") && isRms(module))
    return "float32";
  const isWeight = end === "weight" && (module instanceof Linear || module instanceof Embedding);
  const isLeft =
    /^tower\.|\.(router|sharedGate|indexer\.weights)$/.test(path) ||
    (module instanceof Embedding && !/(^|\.)(tokenEmbedding|embeddings\.token)$/.test(path));
  if (quantize === undefined || !isWeight || isLeft) return dtype;
  return formatFor(quantize, shape[1]) ?? dtype;
}

/** The number of parameters that a tensor holds. */
const partsOf = ({ stored, change }: Pick<Step, "stored" | "change">): number =>
  change?.kind === "part" ? (change.joined ?? stored.shape[0]) : 1;

const isRms = (module: Module): boolean => !("bias" in module);
function bytesIn(format: DType | QuantizedFormat, count: number): number {
  if (isDType(format)) return count * bytesOf(format);
  if (typeof format === "string") {
    const { values, bytes } = blockFormat(format);
    return (count / values) * bytes;
  }
  const scales = (count / format.groupSize) * (format.symmetric ? 1 : 2) * 4;
  return (count * format.bits) / 8 + scales;
}

/** The memory that a model needs, computed before loading. `String(report)` is a readable text. */
export interface MemoryReport {
  /** Bytes of the tensors that are loaded, as stored in the files. */
  readonly fileBytes: number;
  /** Bytes of weights that are mapped from the file: pages are read when they are used. */
  readonly mappedBytes: number;
  /** Bytes of converted or quantized weights, which are allocated. */
  readonly allocatedBytes: number;
  /** Peak memory while loading. */
  readonly peakBytes: number;
  /** Bytes of keys and values for each token of a sequence. */
  readonly cacheBytesPerToken: number;
  /** Bytes that tensors may still allocate. */
  readonly availableBytes: number;
  /** The number of weights of each dtype or format after loading. */
  readonly formats: Readonly<Record<string, number>>;
}

/** @internal Computes the memory of a plan. */
export function reportOf(
  model: Pick<Loadable, "cacheElements">,
  steps: readonly Step[],
  dtype: FloatDType,
  availableBytes: number,
): MemoryReport {
  const sum = (value: (step: Step) => number) => steps.reduce((total, step) => total + value(step), 0);
  const perPart = (step: Step) => step.stored.byteLength / partsOf(step);
  const formats: Record<string, number> = {};
  for (const { becomes } of steps) {
    const name = isDType(becomes) ? becomes : formatName(becomes);
    formats[name] = (formats[name] ?? 0) + 1;
  }
  const allocatedBytes = sum((step) => step.allocated);
  const report = {
    fileBytes: sum(perPart),
    mappedBytes: sum((step) => (step.isMapped ? perPart(step) : 0)),
    allocatedBytes,
    peakBytes: allocatedBytes + Math.max(0, ...steps.map((step) => step.temporary)),
    cacheBytesPerToken: model.cacheElements * bytesOf(dtype),
    availableBytes,
    formats,
  };
  return Object.defineProperty(report, "toString", { value: () => format(report), enumerable: false });
}

const format = (report: MemoryReport): string =>
  `${report.fileBytes} bytes of weights: ${report.mappedBytes} mapped, ${report.allocatedBytes} allocated ` +
  `(${report.peakBytes} at the peak, of ${report.availableBytes} available); ` +
  `${report.cacheBytesPerToken} bytes of keys and values a token; ` +
  Object.entries(report.formats)
    .map(([name, count]) => `${name}: ${count}`)
    .join(", ");
