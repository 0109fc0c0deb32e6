import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { lastElement } from "../../../core/collections.ts";
import { ArgumentError, OutOfMemoryError } from "../../../core/errors.ts";
import { aFunction, aPath, flag } from "../../../core/kinds.ts";
import { named, operand, parameters } from "../../../core/parameters.ts";
import { withFileErrors } from "../../../io/file_errors.ts";
import type { GgufReader } from "../../../io/gguf/file.ts";
import { openGgufFor } from "../../../io/gguf/open.ts";
import { locateModel } from "../../../io/hub/locate.ts";
import type { SafetensorsReader } from "../../../io/safetensors/file.ts";
import type { GgmlFormat, QuantizedFormat } from "../../../quant/formats.ts";
import { aPrecision, type ProductPrecision } from "../../../quant/matmul/matmul.ts";
import { type AffineOptions, aFormat } from "../../../quant/parts.ts";
import { type FloatDType, isFloat } from "../../../tensor/dtype.ts";
import { limitOfMemory, whatIsAllowed } from "../../../tensor/reserve.ts";
import { memory } from "../../../tensor/usage.ts";
import { floatDType } from "../../layers/kinds.ts";
import { Decoder } from "../decoder/decoder.ts";
import type { DecoderDescription } from "../decoder/description.ts";
import { readConfig } from "../hugging_face/config.ts";
import type { Described } from "./architectures.ts";
import { isEncoder } from "./encoder/architectures.ts";
import { isGgufEncoder, openGgufEncoder } from "./encoder/gguf.ts";
import { isClassifier, isForSentences, isWithoutHead, openSentenceDecoder } from "./encoder/of_decoder.ts";
import { openEncoder } from "./encoder/open.ts";
import { encoderTypeOf } from "./encoder/published.ts";
import { isEncoderDecoder } from "./encoder_decoder/architectures.ts";
import { isGgufEncoderDecoder, openGgufEncoderDecoder } from "./encoder_decoder/gguf.ts";
import { openEncoderDecoder } from "./encoder_decoder/open.ts";
import { fill, noMemory } from "./fill.ts";
import {
  chatTemplateOf,
  chatTemplateOfGguf,
  type GenerationSettings,
  generationOf,
  generationOfGguf,
} from "./generation.ts";
import { describeGguf } from "./gguf.ts";
import { restoredTensors } from "./gguf_tensors.ts";
import { describeFolder } from "./hugging_face.ts";
import { placesOf, type Style } from "./names.ts";
import { openWeights } from "./open_weights.ts";
import type { LoadableModel, Opened } from "./opened.ts";
import { sourceOf } from "./packed/methods.ts";
import { type MemoryReport, planOf, prefixIn, reportOf, type Storing } from "./plan.ts";
import { ggufSource, type WeightSource } from "./source.ts";
import { isDual, isVision } from "./vision/architectures.ts";
import { isImageModel, openImageModel } from "./vision/image_models.ts";
import { openVision } from "./vision/open.ts";
import { isVisionLanguage } from "./vision_language/describe.ts";
import { isMmproj, openMmproj, openTwoFiles } from "./vision_language/mmproj/open.ts";
import { openVisionLanguage } from "./vision_language/open.ts";
import { isWav2Vec2, openWav2Vec2 } from "./wav2vec2.ts";
import { openWhisper } from "./whisper.ts";

/** Options of {@link loadModel}. */
export interface LoadModelOptions {
  /**
   * The dtype of activations and of weights that are not quantized. Default: the dtype of the token embedding in the
   * file, whose weights are then mapped from the file; float32 if the embedding is quantized or `quantize` is given.
   */
  readonly dtype?: FloatDType | undefined;
  /**
   * Quantizes linear layers and the token embedding to this format, one weight at a time. Weights that the file stores
   * quantized keep their format.
   */
  readonly quantize?: GgmlFormat | QuantizedFormat | AffineOptions | undefined;
  /**
   * Precision of products with quantized weights: `"fast"` lets x be rounded to 8 bits, as llama.cpp does. Default
   * `"exact"`.
   */
  readonly precision?: ProductPrecision | undefined;
  /** Called with the memory that the model will take, before any weight is read. */
  readonly onReport?: ((report: MemoryReport) => void) | undefined;
  /**
   * The GGUF file of an image encoder (`mmproj-….gguf`), if the model is a language model in another GGUF file. The
   * result is a {@link VisionLanguageModel}. Default: none.
   */
  readonly mmproj?: string | undefined;
  /** Whether to load a model on the hub from the cache only, without a download. Default: as `HF_HUB_OFFLINE` says. */
  readonly offline?: boolean | undefined;
}

/** The result of {@link loadModel}. */
export interface LoadedModel<M extends LoadableModel = Decoder> {
  /** The model, in evaluation mode. */
  readonly model: M;
  /** The folder or file. */
  readonly path: string;
  /** The kind of source: a Hugging Face folder, or a GGUF file. */
  readonly source: Style;
  /** The contents of `config.json`, or the metadata of the GGUF file by key. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Tokens that begin and end texts, and the recommended sampling settings. */
  readonly generation: GenerationSettings;
  /** The chat template as text; undefined if there is none. */
  readonly chatTemplate: string | undefined;
  /** The memory that the model takes. */
  readonly report: MemoryReport;
}

const loadModelParameters = parameters("loadModel", {
  path: operand(aPath),
  dtype: named(floatDType),
  quantize: named(aFormat),
  precision: named(aPrecision, "exact"),
  onReport: named(aFunction<(report: MemoryReport) => void>()),
  mmproj: named(aPath),
  offline: named(flag),
});

/**
 * Loads a language model from a Hugging Face folder or a GGUF file. From a folder, it also loads an {@link Encoder}
 * such as BERT, a {@link VisionEncoder} such as ViT, a {@link DualEncoder} such as CLIP, an {@link ObjectDetector} or
 * {@link Detr} or {@link RtDetr}, an {@link ImageClassifier} such as ResNet, a {@link SemanticSegmenter}, a
 * {@link DepthEstimator}, a {@link VisionLanguageModel} such as Qwen2.5-VL, an {@link EncoderDecoder} such as T5, and a
 * {@link Whisper} or {@link Wav2Vec2} model. Name the type of such a model in TypeScript:
 * `loadModel<nn.Encoder>(path)`. A folder has `config.json` and one or more safetensors files, whose weights may be
 * quantized by MLX, GPTQ, AWQ, mxfp4 or fp8. `docs/models.md`, `docs/encoders.md`, `docs/vision.md`,
 * `docs/vision-chat.md`, `docs/speech.md` and `docs/translation.md` list the supported architectures and methods.
 * Weights that keep their dtype are mapped from the file. Other weights are converted one at a time, so that no weight
 * is in memory twice.
 *
 * A name such as `owner/name` is a model on the hub at `HF_ENDPOINT`. It is loaded from the cache that Hugging Face's
 * tools share, or downloaded into it first; a terminal shows the progress.
 *
 * @param path a folder, or a `.gguf` file; for a model in several files, any of them. Or `owner/name`, with `@revision`
 * for a branch, tag or commit, and `:Q4_K_M` for a quantization in a repository of GGUF files
 *
 * @example
 * const { model } = await nn.loadModel("HuggingFaceTB/SmolLM2-135M-Instruct", { quantize: "q8_0" });
 * for await (const token of nn.generate(model, [1, 2, 3])) console.log(token);
 *
 * @throws {ArgumentError} `unknownArchitecture`, and other codes for unsupported settings, which the error names.
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged files.
 * @throws {DownloadError} for a model that can't be downloaded.
 * @throws {StateDictError} for tensors that do not match the config. @throws {OutOfMemoryError} `notEnoughMemory`,
 * before any weight is read, with the number of bytes.
 */
export function loadModel(path: string, options?: LoadModelOptions): Promise<LoadedModel>;
export function loadModel<M extends LoadableModel>(path: string, options?: LoadModelOptions): Promise<LoadedModel<M>>;
export async function loadModel(...values: unknown[]): Promise<LoadedModel<LoadableModel>> {
  const { path: given, dtype, quantize, precision, onReport, mmproj, offline } = loadModelParameters(values);
  const path = await locateModel("loadModel", given, { offline });
  using opened = open(path, mmproj);
  const storing: Storing = { dtype: dtype ?? defaultDType(opened, quantize), quantize, precision };
  return await loadOpened(path, opened, storing, onReport);
}

/** @internal Makes the model of an open folder or file, and reads its weights. */
export async function loadOpened(
  path: string,
  opened: Opened,
  storing: Storing,
  onReport?: LoadModelOptions["onReport"],
): Promise<LoadedModel<LoadableModel>> {
  const { source, style, config, generation, chatTemplate, places } = opened;
  const model = opened.newModel({ dtype: storing.dtype, initialization: noMemory }).eval();
  const steps = planOf(model, places, source, storing);
  const report = reportOf(model, steps, storing.dtype, availableBytes());
  onReport?.(report);
  checkRoom(path, report);
  // If the mapped weights nearly fill memory, pages that were read early would be evicted before use.
  const isReadAhead = report.mappedBytes <= report.availableBytes / 2;
  await fill(model, steps, source, { ...storing, isReadAhead });
  model.origin = originOf(path);
  return { model, path, source: style, config, generation, chatTemplate, report };
}

/** Returns `owner/name` for a model in Hugging Face's cache (`models--owner--name/snapshots/…`), else the path. */
function originOf(path: string): string {
  const [, owner, name] = /(?:^|[\\/])models--(.+?)--([^\\/]+)[\\/]snapshots[\\/]/.exec(path) ?? [];
  return owner !== undefined && !path.endsWith(".gguf") ? `${owner}/${name}` : path;
}

function open(path: string, mmproj?: string): Opened {
  const isFolder = withFileErrors("loadModel", path, () => statSync(path)).isDirectory();
  if (isFolder && mmproj !== undefined)
    throw new ArgumentError("loadModel", "otherProjector", `expected a .gguf file with mmproj, got the folder ${path}`);
  const has = (name: string) => existsSync(join(path, name));
  if (isFolder && has("adapter_config.json") && !has("config.json"))
    throw new ArgumentError(
      "loadModel",
      "adapter",
      `expected a model, got an adapter in ${path}; load its base model, then call nn.loadLora(model, path)`,
    );
  if (isFolder) return openUnprefixed(path);
  if (path.endsWith(".gguf")) return openGguf(path, mmproj);
  throw new ArgumentError("loadModel", "unknownFile", `expected a folder or a .gguf file, got ${path}`);
}

/** How a decoder is made, and where its weights are. */
const decoderOf = ({ name, description }: Described, style: Style): Pick<Opened, "places" | "newModel"> => ({
  places: placesOf(name, description, style),
  newModel: (options) => new Decoder(description, options),
});

/** Opens a folder, without a prefix that all names of its weights share. */
function openUnprefixed(path: string): Opened {
  const opened = openFolder(path, "");
  const prefix = prefixIn(opened.source, opened.places);
  if (prefix === "") return opened;
  opened[Symbol.dispose]();
  return openFolder(path, prefix);
}

function openFolder(path: string, prefix: string): Opened {
  const given: { readonly model_type?: unknown } = readConfig("loadModel", path);
  const type = encoderTypeOf(given.model_type);
  if (isEncoderDecoder(type)) return openEncoderDecoder(path, type, given, prefix);
  if (isEncoder(type)) return openEncoder(path, type, given, prefix);
  if (isVision(type) || isDual(type)) return openVision(path, type, given, prefix);
  if (isImageModel(type)) return openImageModel(path, type, given, prefix);
  if (isWav2Vec2(type)) return openWav2Vec2(path, type, given, prefix);
  if (type === "whisper") return openWhisper(path, given, prefix);
  const reader = isVisionLanguage(type) ? openVisionLanguage(path, type, given, prefix) : undefined;
  if (reader) return reader;
  const { config, settings, ...described } = describeFolder(path);
  if (isForSentences(path) || isClassifier(settings) || isWithoutHead(path, described, settings))
    return openSentenceDecoder(path, { config, settings, ...described }, prefix);
  const about = { generation: generationOf(path), chatTemplate: chatTemplateOf(path) };
  const file = openWeights(path, prefix);
  const close = { [Symbol.dispose]: () => file.close() };
  try {
    const source = withoutUnused(sourceOf(file, settings), described.description.layers);
    const fields = config as Readonly<Record<string, unknown>>;
    const own = decoderOf(untied(described, file), "huggingFace");
    return { ...own, source, style: "huggingFace", config: fields, ...about, ...close };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

/** Unties the head if the files have its weight besides another one of the token embedding, as `transformers` does. */
function untied({ name, description }: Described, file: SafetensorsReader): Described {
  const apart = { name, description: { ...description, tied: false } };
  const places = placesOf(name, apart.description, "huggingFace");
  const [first, last] = [places[0], lastElement(places)].map(({ names }) =>
    names.map((each) => `${each}.weight`).find((each) => file.has(each)),
  );
  if (!description.tied || first === undefined || last === undefined) return { name, description };
  const [embedding, head] = [file.bytes(first), file.bytes(last)];
  const order = Buffer.compare(embedding.dataSync() as Uint8Array, head.dataSync() as Uint8Array);
  for (const each of [embedding, head]) each.dispose();
  return order === 0 ? { name, description } : apart;
}

/**
 * Ignores layers after the last block, which are for multi-token prediction. Ignores projections of keys and values in
 * layers that share the keys and values of earlier layers.
 */
function withoutUnused(source: WeightSource, layers: DecoderDescription["layers"]): WeightSource {
  const isUnused = (name: string) => {
    const [, index, part = ""] = /^(?:model\.(?:language_model\.)?layers|blk)\.(\d+)\.(.*)/.exec(name) ?? [];
    if (index === undefined || Number(index) >= layers.length) return index !== undefined;
    return layers[Number(index)].attention.sharing?.stores === false && /^self_attn\.[kv]_(proj|norm)\./.test(part);
  };
  return { ...source, isNeutral: (name) => isUnused(name) || (source.isNeutral?.(name) ?? false) };
}

function openGguf(path: string, mmproj?: string): Opened {
  const file = openGgufFor("loadModel", path);
  const source = restoredTensors(ggufSource(file), file.metadata);
  try {
    if (mmproj !== undefined) return withMmproj(file, mmproj);
    if (isMmproj(file)) {
      const message = `expected a language model, got an image encoder in ${path}; load it with the language model's`;
      throw new ArgumentError("loadModel", "otherProjector", `${message} file: loadModel(path, { mmproj })`);
    }
    if (isGgufEncoder(file)) return openGgufEncoder(file);
    if (isGgufEncoderDecoder(file)) return openGgufEncoderDecoder(file);
    const config = Object.fromEntries(Object.entries(file.metadata).map(([key, { value }]) => [key, value]));
    const about = { config, generation: generationOfGguf(file), chatTemplate: chatTemplateOfGguf(file) };
    const described = describeGguf(file);
    const own = withoutUnused(source, described.description.layers);
    const close = { [Symbol.dispose]: () => source[Symbol.dispose]() };
    return { ...decoderOf(described, "gguf"), source: own, style: "gguf", ...about, ...close };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

function withMmproj(text: GgufReader, path: string): Opened {
  const file = openMmproj("loadModel", path);
  try {
    return openTwoFiles(text, file);
  } catch (cause) {
    file.close();
    throw cause;
  }
}

/** The dtype of the token embedding, so that the largest weights can be mapped. */
function defaultDType({ places, source }: Opened, quantize: QuantizedFormat | undefined): FloatDType {
  const name = places[0].names.map((path) => `${path}.weight`).find((key) => source.has(key));
  const dtype = name === undefined ? null : source.describe(name).dtype;
  return quantize === undefined && dtype !== null && isFloat(dtype) ? dtype : "float32";
}

function availableBytes(): number {
  const { host, metal } = memory();
  return Math.max(0, limitOfMemory().count - host.liveBytes - metal.liveBytes);
}

function checkRoom(path: string, report: MemoryReport): void {
  if (report.peakBytes <= report.availableBytes) return;
  throw new OutOfMemoryError(
    "loadModel",
    "notEnoughMemory",
    `${path} takes ${report.peakBytes} bytes besides mapped weights, but only ${report.availableBytes} are free: ` +
      `${whatIsAllowed()}; load it in the dtype of the file, or with { quantize: "q4_K" }`,
  );
}
