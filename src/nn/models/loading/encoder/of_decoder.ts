/** Opens language models that embed or classify texts, such as EmbeddingGemma and reward models. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { recordIn } from "../../../../core/values.ts";
import { hasTokenizer, loadTokenizer } from "../../../../text/load_tokenizer.ts";
import type { DecoderDescription } from "../../decoder/description.ts";
import type { EncoderDescription } from "../../encoder/description.ts";
import type { Described } from "../architectures.ts";
import { chatTemplateOf, generationOf } from "../generation.ts";
import { placesOf } from "../names.ts";
import { openWeights } from "../open_weights.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import type { Settings } from "../settings.ts";
import { decoderHeadOf, labelsOf } from "./heads.ts";
import { encoderMaker } from "./open.ts";
import { loadSentenceHead } from "./sentence_files.ts";

/** Whether a folder was saved by sentence-transformers. */
export const isForSentences = (path: string): boolean => existsSync(join(path, "modules.json"));

/** Whether a folder has a language model without its output head, as `LlamaModel.save_pretrained` writes it. */
export function isWithoutHead(path: string, { description }: Described, settings: Settings): boolean {
  const architectures = settings.get("architectures");
  const className: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  if (description.tied || typeof className !== "string" || !/(?<!LMHead)Model$/.test(className)) return false;
  const file = openWeights(path);
  try {
    return !file.names.some(isHead);
  } finally {
    file.close();
  }
}

/** Whether a folder has a language model with a head for classes of texts or tokens. */
export const isClassifier = (settings: Settings): boolean => decoderHeadOf(settings) !== undefined;

/**
 * Opens the folder of a language model as an encoder.
 *
 * @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for unsupported modules.
 */
export function openSentenceDecoder(
  path: string,
  { name, description, config, settings }: Described & { readonly config: object; readonly settings: Settings },
  prefix: string,
): Opened {
  // load the small files first, so that their errors appear before the weights are read
  const tokenizer = hasTokenizer(path) ? loadTokenizer(path) : undefined;
  const sentence = loadSentenceHead(path, description.width);
  const head = sentence ? undefined : decoderHeadOf(settings);
  const labels = head && labelsOf(settings, head);
  const decoder: DecoderDescription = { ...description, tied: true, headBias: false };
  const file = openWeights(path, prefix);
  try {
    const source = sourceOf(file, settings);
    const places = placesOf(name, decoder, "huggingFace");
    return {
      places: [
        ...places.map((place) => ({ ...place, path: `decoder.${place.path}` })),
        ...(head ? [{ path: "head.output", names: ["score", "classifier"] }] : []),
      ],
      // the head is not needed, because no logits are computed
      source: { ...source, isNeutral: (tensor) => isHead(tensor) || (source.isNeutral?.(tensor) ?? false) },
      style: "huggingFace",
      generation: generationOf(path),
      chatTemplate: chatTemplateOf(path),
      config: recordIn(config),
      newModel: encoderMaker({ ...encoderOf(decoder), head }, { tokenizer, labels, sentence }),
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

const isHead = (tensor: string): boolean => /(^|\.)(lm_head|embed_out|score|classifier)\./.test(tensor);

/** Returns the description of an encoder that runs the decoder. */
const encoderOf = (decoder: DecoderDescription): EncoderDescription => ({
  architecture: decoder.architecture,
  vocabularySize: decoder.vocabularySize,
  width: decoder.width,
  decoder,
  contextLength: decoder.contextLength,
  norm: decoder.norm,
  normPlace: "before",
  finalNorm: false,
  embeddings: { width: decoder.width, norm: false, tokenTypes: 0 },
  layers: [],
  order: [],
});
