/** Opens the folder of an encoder-decoder model. */

import { join } from "node:path";
import { noGrad } from "../../../../autograd/modes.ts";
import { recordIn } from "../../../../core/values.ts";
import { equal } from "../../../../ops/reduction/close.ts";
import { sameShape } from "../../../../tensor/shape.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { hasTokenizer, loadTokenizer } from "../../../../text/load_tokenizer.ts";
import { Encoder } from "../../encoder/encoder.ts";
import { EncoderDecoderClassifier } from "../../encoder_decoder/classifier.ts";
import { EncoderDecoder } from "../../encoder_decoder/encoder_decoder.ts";
import { loadSentenceHead } from "../encoder/sentence_files.ts";
import { chatTemplateOf, generationOf } from "../generation.ts";
import { openWeights } from "../open_weights.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import { Settings } from "../settings.ts";
import type { WeightSource } from "../source.ts";
import type { EncoderDecoderName } from "./architectures.ts";
import {
  describeClassifier,
  describeEncoderAlone,
  describeEncoderDecoder,
  isEncoderAlone,
  isTextClassifier,
  type Stored,
} from "./describe.ts";
import { classifierPlaces, encoderDecoderPlaces, isWithoutUse, placesOfPart, sharedNames } from "./names.ts";
import { batchDefaultsOf, startTokenOf, textSettingsOf } from "./texts.ts";

/**
 * Opens the folder of an encoder-decoder model. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError}
 * for unsupported settings.
 */
export function openEncoderDecoder(path: string, name: EncoderDecoderName, config: object, prefix: string): Opened {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const sentence = loadSentenceHead(path, settings.wholeIfAny("d_model") ?? 0);
  const tokenizer = tokenizerOf(path);
  const file = openWeights(path, prefix);
  try {
    const source = sourceOf(file, settings);
    const common = {
      style: "huggingFace" as const,
      generation: generationOf(path),
      chatTemplate: chatTemplateOf(path),
      config: recordIn(config),
      [Symbol.dispose]: () => file.close(),
    };
    if (sentence || isEncoderAlone(config)) {
      const description = describeEncoderAlone(name, settings);
      return {
        ...common,
        source: ignoring(source, (key) => isWithoutUse(key) || /^(model\.)?(decoder\.|lm_head)/.test(key)),
        places: [
          { path: "embeddings.token", names: sharedNames(name) },
          ...placesOfPart(name, description, "encoder", ""),
        ],
        newModel(options) {
          const model = new Encoder(description, options);
          model.tokenizer = tokenizer;
          model.sentence = sentence?.(options) ?? null;
          return model;
        },
      };
    }
    if (isTextClassifier(config)) {
      const { description, labels } = describeClassifier(name, settings, storedIn(source));
      return {
        ...common,
        source: ignoring(source, isWithoutUse),
        places: classifierPlaces(name, description),
        newModel: (options) => Object.assign(new EncoderDecoderClassifier(description, options), { tokenizer, labels }),
      };
    }
    const described = describeEncoderDecoder(name, settings, storedIn(source));
    const description = { ...described, startToken: startTokenOf(path) ?? described.startToken };
    const [generation, texts] = [batchDefaultsOf(name, path), textSettingsOf(path)];
    return {
      ...common,
      source: ignoring(source, isWithoutUse),
      places: encoderDecoderPlaces(name, description),
      newModel(options) {
        const model = new EncoderDecoder(description, options);
        model.tokenizer = tokenizer;
        model.generation = generation;
        model.texts = texts;
        return model;
      },
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

/** Returns which tables of a checkpoint differ from the one that the encoder and the decoder share. */
function storedIn(source: WeightSource): Stored {
  const find = (...names: string[]) => names.map((name) => `${name}.weight`).find((name) => source.has(name));
  const shared = find("model.shared", "shared");
  const [ofEncoder, ofDecoder] = (["encoder", "decoder"] as const).map((side) =>
    find(`model.${side}.embed_tokens`, `${side}.embed_tokens`),
  );
  const differs = (one: string | undefined, other: string | undefined) =>
    one !== undefined && other !== undefined && !areEqual(source, one, other);
  return {
    hasTables: ofEncoder !== undefined && ofDecoder !== undefined,
    hasOtherTables: differs(ofEncoder, shared ?? ofDecoder) || differs(ofDecoder, shared),
    hasHead: source.has("lm_head.weight") && differs("lm_head.weight", ofDecoder ?? shared),
    hasLogitsBias: source.names.some((name) => /(^|\.)final_logits_bias$/.test(name)),
  };
}

function areEqual(source: WeightSource, ...names: readonly [string, string]): boolean {
  const [one, other] = names.map((name) => source.describe(name));
  if (one.dtype === null || one.dtype !== other.dtype || !sameShape(one.shape, other.shape)) return false;
  return noGrad(() => tidy(() => equal(source.read(names[0]) as Tensor, source.read(names[1]) as Tensor)));
}

/** Loads the tokenizer before the weights, so that its errors appear immediately. */
const tokenizerOf = (path: string) => (hasTokenizer(path) ? loadTokenizer(path) : undefined);

const ignoring = (source: WeightSource, isUseless: (name: string) => boolean): WeightSource => ({
  ...source,
  isNeutral: (name) => isUseless(name) || (source.isNeutral?.(name) ?? false),
});
