/**
 * Converts a `config.json` of a vision-language model to a description. Fields and defaults match Hugging Face's
 * `transformers` 5.23.0.
 */
import type { VisionLanguageDescription } from "../../vision_language/description.ts";
import { checkRotations } from "../hugging_face.ts";
import type { Settings } from "../settings.ts";
import { describeWithEncoder, encoderFamilies } from "./encoders.ts";
import { describeQwen, qwenFamilies } from "./qwen.ts";

/** The vision-language models by the `model_type` of a `config.json`. */
export const visionLanguageFamilies = { ...qwenFamilies, ...encoderFamilies };

/** The name of a vision-language architecture. */
export type VisionLanguageName = keyof typeof visionLanguageFamilies;

/** Whether a `model_type` is a vision-language model. */
export const isVisionLanguage = (type: unknown): type is VisionLanguageName =>
  typeof type === "string" && Object.hasOwn(visionLanguageFamilies, type);

/**
 * Returns the description of a model.
 *
 * @param isThere whether a checkpoint has a weight
 *
 * @throws {FileFormatError} @throws {ArgumentError} for unsupported settings.
 */
export function describeVisionLanguage(
  name: VisionLanguageName,
  config: Settings,
  isThere: (weight: RegExp) => boolean,
): VisionLanguageDescription {
  const described =
    name in qwenFamilies
      ? describeQwen(name, qwenFamilies[name as keyof typeof qwenFamilies], config)
      : describeWithEncoder(name, encoderFamilies[name as keyof typeof encoderFamilies], config, isThere);
  const { text, imageToken } = described;
  checkRotations(text, config);
  if (imageToken < text.vocabularySize) return described;
  const message = `expected the token of images to be below vocab_size, ${text.vocabularySize}, got ${imageToken}`;
  throw config.fail(message);
}
