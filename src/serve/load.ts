/** Loads a model with its tokenizer and chat template. */
import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { ArgumentError } from "../core/errors.ts";
import { locateModel } from "../io/hub/locate.ts";
import { Encoder } from "../nn/models/encoder/encoder.ts";
import { EncoderDecoder } from "../nn/models/encoder_decoder/encoder_decoder.ts";
import { readConfig } from "../nn/models/hugging_face/config.ts";
import { type LoadedModel, type LoadModelOptions, loadModel } from "../nn/models/loading/load_model.ts";
import type { LoadableModel } from "../nn/models/loading/opened.ts";
import { hasImageSettings, loadChatProcessor } from "../nn/models/loading/vision_language/processor.ts";
import { isWav2Vec2 } from "../nn/models/loading/wav2vec2.ts";
import { loadLora } from "../nn/models/lora/peft.ts";
import type { ImageClassifier } from "../nn/models/vision/classifier/classifier.ts";
import type { DepthEstimator } from "../nn/models/vision/depth/estimator.ts";
import { ObjectDetector } from "../nn/models/vision/detector.ts";
import type { Detr } from "../nn/models/vision/detr/detr.ts";
import { DualEncoder } from "../nn/models/vision/dual_encoder.ts";
import { ImageModel } from "../nn/models/vision/image_model.ts";
import type { RtDetr } from "../nn/models/vision/rt_detr/rt_detr.ts";
import type { Sam } from "../nn/models/vision/sam/sam.ts";
import type { Sam2 } from "../nn/models/vision/sam/sam2.ts";
import type { SemanticSegmenter } from "../nn/models/vision/segformer/segmenter.ts";
import { VisionEncoder } from "../nn/models/vision/vision_encoder.ts";
import { VisionLanguageModel } from "../nn/models/vision_language/model.ts";
import { Wav2Vec2 } from "../nn/models/wav2vec2/wav2vec2.ts";
import { Whisper } from "../nn/models/whisper/whisper.ts";
import { ChatTemplate } from "../text/chat_template.ts";
import { loadTokenizer } from "../text/load_tokenizer.ts";
import type { ServedEncoder } from "./encoders.ts";
import type { ServedModel } from "./served_model.ts";
import type { ServedSpeech } from "./speech.ts";

/**
 * @param options options for loading the model, and the folder of an adapter in PEFT's format
 * @param name the model's name in the API. Default: the name of the folder or file, or the name on the hub.
 */
export async function loadServed(
  path: string,
  { adapter, ...options }: LoadModelOptions & { readonly adapter?: string | undefined } = {},
  name?: string,
): Promise<ServedModel> {
  const served = await loadAnyServed(path, { adapter, ...options }, name);
  if ("model" in served) return served;
  throw new ArgumentError(
    "loadModel",
    "encoder" in served ? "encoder" : "speech",
    "encoder" in served
      ? `expected a language model, got the encoder ${served.encoder.description.architecture} in ${path}; ` +
          "use `orchard embed` or `orchard serve`"
      : `expected a language model, got a speech recognition model in ${path}; use \`orchard transcribe\` or ` +
          "`orchard serve`",
  );
}

/** Loads a model to serve, as {@link loadServed} does, but also accepts encoders and speech recognition models. */
export async function loadAnyServed(
  given: string,
  { adapter, ...options }: LoadModelOptions & { readonly adapter?: string | undefined } = {},
  name?: string,
): Promise<ServedModel | ServedEncoder | ServedSpeech> {
  const path = await locateModel("loadModel", given, { offline: options.offline });
  const ownName = name ?? (path === given ? basename(resolve(path)).replace(/\.gguf$/, "") : given);
  if (isCtc(path)) return servedCtc(path, ownName, options, adapter);
  const tokenizer = loadTokenizer(path); // before the weights, so that errors appear immediately
  const loaded: LoadedModel<LoadableModel> = await loadModel<LoadableModel>(path, options);
  const { model, generation, chatTemplate } = loaded;
  if (model instanceof Wav2Vec2) return { name: ownName, speech: model };
  if (isOfImages(model)) {
    const functions = "nn.embedImages, nn.classifyImages, nn.detectObjects, nn.segmentImage or nn.estimateDepth";
    const message = `${path} is an image model, which can't be served; use ${functions}`;
    throw new ArgumentError("loadModel", "imageEncoder", message);
  }
  if (model instanceof EncoderDecoder)
    throw new ArgumentError(
      "loadModel",
      "encoderDecoder",
      `expected a language model or an encoder, got the encoder-decoder model ${model.description.architecture} in ` +
        `${path}; use \`orchard translate\` or nn.textToText`,
    );
  if (tokenizer.vocabularySize > model.vocabularySize) {
    const message = `expected a tokenizer of at most ${model.vocabularySize} tokens, the model's vocabulary, got`;
    throw new ArgumentError("loadModel", "otherTokenizer", `${message} ${tokenizer.vocabularySize} in ${path}`);
  }
  if (model instanceof Whisper) {
    if (adapter === undefined) return { name: ownName, speech: model };
    throw new ArgumentError("loadModel", "adapter", "expected no adapter: adapters of speech models are not supported");
  }
  if (model instanceof Encoder) {
    if (adapter === undefined) return { name: ownName, encoder: model, tokenizer };
    throw new ArgumentError("loadModel", "adapter", "expected no adapter: adapters of encoders are not supported");
  }
  if (adapter !== undefined) loadLora(model, adapter);
  const { mmproj } = options;
  const hasSettings = mmproj !== undefined || hasImageSettings(path);
  const readsImages = model instanceof VisionLanguageModel && chatTemplate !== undefined && hasSettings;
  const processor = readsImages ? loadChatProcessor(path, { mmproj }) : undefined;
  const { temperature, topK, topP, repetitionPenalty, stopTokens } = generation;
  return {
    name: ownName,
    model,
    tokenizer,
    template: chatTemplate === undefined ? undefined : new ChatTemplate(chatTemplate, tokenizer.templateTokens),
    processor,
    defaults: { temperature, topK, topP, repetitionPenalty },
    stopTokens,
  };
}

const isOfImages = (
  model: LoadableModel,
): model is
  | VisionEncoder
  | DualEncoder
  | ObjectDetector
  | ImageClassifier
  | SemanticSegmenter
  | DepthEstimator
  | Detr
  | RtDetr
  | Sam
  | Sam2 => [VisionEncoder, DualEncoder, ObjectDetector, ImageModel].some((each) => model instanceof each);

/** Whether a folder has a CTC model, which has a list of symbols instead of a tokenizer. */
const isCtc = (path: string): boolean =>
  existsSync(join(path, "config.json")) &&
  isWav2Vec2((readConfig("loadModel", path) as { readonly model_type?: unknown }).model_type);

async function servedCtc(
  path: string,
  name: string,
  options: LoadModelOptions,
  adapter: string | undefined,
): Promise<ServedSpeech> {
  if (adapter !== undefined)
    throw new ArgumentError("loadModel", "adapter", "expected no adapter: adapters of speech models are not supported");
  return { name, speech: (await loadModel<Wav2Vec2>(path, options)).model };
}
