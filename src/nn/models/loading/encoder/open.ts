/** Opens the folder of an encoder. */

import { join } from "node:path";
import { recordIn } from "../../../../core/values.ts";
import { hasTokenizer, loadTokenizer } from "../../../../text/load_tokenizer.ts";
import type { PretrainedTokenizer } from "../../../../text/pretrained_tokenizer.ts";
import type { LayerOptions } from "../../../layers/initialization.ts";
import type { EncoderDescription } from "../../encoder/description.ts";
import { Encoder } from "../../encoder/encoder.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import { chatTemplateOf, generationOf } from "../generation.ts";
import { openWeights } from "../open_weights.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import { Settings } from "../settings.ts";
import type { WeightSource } from "../source.ts";
import { type EncoderName, encoderNameOf } from "./architectures.ts";
import { type DescribedEncoder, describeEncoder } from "./describe.ts";
import { encoderPlaces, isWithoutUse } from "./names.ts";
import { loadSentenceHead } from "./sentence_files.ts";

/**
 * Opens the folder of an encoder with the settings of `config`.
 *
 * @param prefix a prefix of all names of weights. Default: none
 * @param isForTexts whether `modules.json` of sentence-transformers replaces the head
 *
 * @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for unsupported settings.
 */
export function openEncoder(path: string, type: EncoderName, config: object, prefix = "", isForTexts = true): Opened {
  const name = encoderNameOf(type, config);
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const described = describeEncoder(name, settings);
  const about = { generation: generationOf(path), chatTemplate: chatTemplateOf(path) };
  // before the weights, so that errors appear immediately
  const tokenizer = hasTokenizer(path) ? loadTokenizer(path) : undefined;
  const sentence = isForTexts ? loadSentenceHead(path, described.description.width) : undefined;
  // Configs of sentence-transformers often name the head of the model that they were made from, whose weights the files
  // lack.
  const { description, labels } = sentence ? withoutHead(described) : described;
  const file = openWeights(path, prefix);
  try {
    const source = withoutUnused(sourceOf(file, settings));
    return {
      places: encoderPlaces(name, description),
      source,
      style: "huggingFace",
      ...about,
      config: recordIn(config),
      newModel: encoderMaker(description, { tokenizer, labels, sentence }),
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

/** What an encoder has besides its network. */
interface EncoderParts {
  readonly tokenizer: PretrainedTokenizer | undefined;
  readonly labels: EncoderLabels | undefined;
  readonly sentence: ReturnType<typeof loadSentenceHead>;
}

/** Returns a function that makes an encoder with the parts of its folder. */
export const encoderMaker =
  (description: EncoderDescription, { tokenizer, labels, sentence }: EncoderParts) =>
  (options: LayerOptions): Encoder => {
    const model = new Encoder(description, options);
    model.tokenizer = tokenizer;
    model.labels = labels;
    model.sentence = sentence?.(options) ?? null;
    return model;
  };

const withoutHead = ({ description }: DescribedEncoder) => ({
  description: { ...description, head: undefined },
  labels: undefined,
});

/** Ignores the weights of other heads. */
const withoutUnused = (source: WeightSource): WeightSource => ({
  ...source,
  isNeutral: (name) => isWithoutUse(name) || (source.isNeutral?.(name) ?? false),
});
