/** What loading will do, before it does it: which tensor of a file becomes which parameter, and the bytes of that. */
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
import type { Decoder } from "../decoder/decoder.ts";
import type { Change, Place } from "./names.ts";
import type { StoredTensor, WeightSource } from "./source.ts";

/** How weights are kept. */
export interface Storing {
  /** Of activations, and of weights that are not quantised. */
  readonly dtype: FloatDType;
  readonly quantize: QuantizedFormat | undefined;
  /** Of products with quantised weights. */
  readonly precision: ProductPrecision;
}

/** One parameter, and where it comes from. */
export interface Step {
  /** The layer's path in the model. */
  readonly path: string;
  readonly end: "weight" | "bias";
  /** In the file. */
  readonly name: string;
  readonly stored: StoredTensor;
  readonly change: Change | undefined;
  /** Of the parameter. */
  readonly shape: Shape;
  /** What it becomes: a dtype, or a format. */
  readonly becomes: DType | QuantizedFormat;
  /** Whether the parameter is the file's own bytes, mapped into memory. */
  readonly isMapped: boolean;
  /** Bytes that it takes besides the file's. */
  readonly allocated: number;
  /** Bytes that are needed while it is made, and free again afterwards. */
  readonly temporary: number;
}

/** Constant tables of older files, what llama.cpp computes beforehand, and what sees pictures. */
const isIgnored = (name: string): boolean =>
  [
    /\.attn\.(masked_)?bias$|\.rotary_emb\.inv_freq$/,
    /^rope_(freqs|factors_\w+)\.weight$/,
    /vision_tower\.|multi_modal_projector\.|vision_model\./,
  ].some((pattern) => pattern.test(name));

/** Smaller tensors are read, which costs less than a mapping. */
const LEAST_MAPPED_BYTES = 65_536;

/** @throws {StateDictError} listing what is missing, what is unexpected, and what has another shape. */
export function planOf(model: Decoder, places: readonly Place[], source: WeightSource, storing: Storing): Step[] {
  const modules = model.namedModules();
  const used = new Set<string>();
  const differences = { missing: [] as string[], different: [] as Differences["different"][number][] };
  const steps = places.flatMap((place) => stepsOf(modules.get(place.path)!, place, source, storing, differences));
  for (const { name } of steps) used.add(name);
  const seen = new Set([...used, ...differences.different.map(({ name }) => name)]);
  // Of a tied head the weight may be there too: it is the embedding's.
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
  const own = module as unknown as Readonly<Record<"weight" | "bias", Tensor | null | undefined>>;
  return (["weight", "bias"] as const).flatMap((end): Step[] => {
    const parameter = own[end];
    if (!parameter) return [];
    const name = place.names.map((each) => `${each}.${end}`).find((each) => source.has(each));
    if (name === undefined) {
      found.missing.push(`${place.names[0]}.${end}`);
      return [];
    }
    const stored = source.describe(name);
    const isChanged = end === "weight" || place.change?.kind === "plusOne";
    const change = isChanged ? changeOf(stored, place.change) : undefined;
    const got = shapeAfter(stored.shape, change);
    const isReadable = stored.format !== null || (stored.dtype !== null && isFloat(stored.dtype));
    if (!isReadable || !got || !sameShape(got, parameter.shape)) {
      const text = { got: `${stored.type}${formatShape(stored.shape)}`, expected: expectedShape(parameter, change) };
      found.different.push({ name, got: describing(text.got), expected: describing(text.expected) });
      return [];
    }
    return [stepOf({ path: place.path, end, name, stored, change, shape: parameter.shape }, module, storing)];
  });
}

const describing = (text: string) => ({ describe: () => text });

function expectedShape({ shape }: Tensor, change: Change | undefined): string {
  if (change?.kind === "transposed") return formatShape([...shape].reverse());
  return change?.kind === "part" ? `${formatShape(shape)} for each expert` : formatShape(shape);
}

/** Packed weights are matrices of outputs and inputs, whatever plain ones of the checkpoint are. */
const changeOf = (stored: StoredTensor, change: Change | undefined): Change | undefined =>
  change?.kind === "transposed" && (stored.format !== null || stored.isComputed) ? undefined : change;

function shapeAfter(shape: Shape, change: Change | undefined): Shape | undefined {
  if (change?.kind === "transposed") return shape.toReversed();
  if (change?.kind !== "part") return shape;
  return shape.length === 3 && change.index < shape[0]! ? shape.slice(1) : undefined;
}

type Target = Pick<Step, "path" | "end" | "name" | "stored" | "change" | "shape">;

function stepOf(target: Target, module: Module, storing: Storing): Step {
  const { stored, change, shape } = target;
  const parts = change?.kind === "part" ? stored.shape[0]! : 1;
  const size = stored.byteLength / parts;
  const becomes = stored.format ?? wantedOf(target, module, storing);
  const isSame = becomes === (stored.format ?? stored.dtype);
  const isMapped = isSame && !stored.isComputed && change?.kind !== "plusOne" && change?.kind !== "transposed";
  const count = elementCount(shape);
  const isRead = isMapped && stored.byteLength < LEAST_MAPPED_BYTES;
  const made = bytesIn(becomes, count);
  const isUnpacked = stored.isComputed || (!isSame && !isDType(becomes));
  return {
    ...{ ...target, becomes, isMapped: isMapped && !isRead },
    allocated: isMapped ? (isRead ? size : 0) : made,
    // computed on the host: from a copy of all values in float32, and a copy in the file's dtype
    temporary: isUnpacked ? 4 * count + size : 0,
  };
}

/** What a plain tensor becomes. */
function wantedOf(
  { path, end, stored, change, shape }: Target,
  module: Module,
  { dtype, quantize }: Storing,
): DType | QuantizedFormat {
  // Norms are computed in float32 with weights in float32, whatever they are applied to.
  const isNorm = /Norm$/.test(path);
  if (isNorm && (change?.kind === "plusOne" || stored.dtype === "float32") && isRms(module)) return "float32";
  const isWeight = end === "weight" && (module instanceof Linear || module instanceof Embedding);
  const isLeft = path.endsWith(".router") || path === "positionEmbedding";
  if (quantize === undefined || !isWeight || isLeft) return dtype;
  return formatFor(quantize, shape[1]!) ?? dtype;
}

const isRms = (module: Module): boolean => !("bias" in module);
function bytesIn(own: DType | QuantizedFormat, count: number): number {
  if (isDType(own)) return count * bytesOf(own);
  if (typeof own === "string") {
    const { values, bytes } = blockFormat(own);
    return (count / values) * bytes;
  }
  const scales = (count / own.groupSize) * (own.symmetric ? 1 : 2) * 4;
  return (count * own.bits) / 8 + scales;
}

/** The bytes of a model, before it is loaded. It prints as text. */
export interface MemoryReport {
  /** Of all tensors of the files that are used. */
  readonly fileBytes: number;
  /** Of weights that stay in the file and are mapped into memory: pages are read when they are used. */
  readonly mappedBytes: number;
  /** Of weights that are converted or quantised: they take memory of their own. */
  readonly allocatedBytes: number;
  /** The most that is needed at once while loading. */
  readonly peakBytes: number;
  /** Of keys and values, for each token of a sequence. */
  readonly cacheBytesPerToken: number;
  /** What tensors may still take on this machine. */
  readonly availableBytes: number;
  /** How many weights have each dtype or format, as they will be kept. */
  readonly formats: Readonly<Record<string, number>>;
}

/** @internal */
export function reportOf(
  model: Decoder,
  steps: readonly Step[],
  dtype: FloatDType,
  availableBytes: number,
): MemoryReport {
  const sum = (value: (step: Step) => number) => steps.reduce((total, step) => total + value(step), 0);
  const perPart = ({ stored, change }: Step) => stored.byteLength / (change?.kind === "part" ? stored.shape[0]! : 1);
  const formats: Record<string, number> = {};
  for (const { becomes } of steps) {
    const name = isDType(becomes) ? becomes : formatName(becomes);
    formats[name] = (formats[name] ?? 0) + 1;
  }
  const allocatedBytes = sum((step) => step.allocated);
  const keys = model.description.layers.map(({ attention }) => 2 * attention.keyValueHeads * attention.headWidth);
  const report = {
    fileBytes: sum(perPart),
    mappedBytes: sum((step) => (step.isMapped ? perPart(step) : 0)),
    allocatedBytes,
    peakBytes: allocatedBytes + Math.max(0, ...steps.map((step) => step.temporary)),
    cacheBytesPerToken: keys.reduce((total, count) => total + count, 0) * bytesOf(dtype),
    ...{ availableBytes, formats },
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
