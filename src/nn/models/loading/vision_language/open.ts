/** Opens the folder of a vision-language model. */

import { join } from "node:path";
import { recordIn } from "../../../../core/values.ts";
import { VisionLanguageModel } from "../../vision_language/model.ts";
import { chatTemplateOf, generationOf } from "../generation.ts";
import { openWeights } from "../open_weights.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import { Settings } from "../settings.ts";
import { describeVisionLanguage, type VisionLanguageName } from "./describe.ts";
import { visionLanguagePlaces } from "./names.ts";

/**
 * Opens a folder; returns undefined for a checkpoint of Gemma 3's text part, which has the same `model_type`.
 *
 * @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for unsupported settings.
 */
export function openVisionLanguage(
  path: string,
  name: VisionLanguageName,
  config: object,
  prefix: string,
): Opened | undefined {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const about = { generation: generationOf(path), chatTemplate: chatTemplateOf(path) };
  const file = openWeights(path, prefix);
  try {
    const isThere = (weight: RegExp) => file.names.some((each) => weight.test(each));
    if (name === "gemma3" && !isThere(/mm_input_projection_weight$/)) {
      file.close();
      return undefined;
    }
    const description = describeVisionLanguage(name, settings, isThere);
    const source = sourceOf(file, settings);
    return {
      places: visionLanguagePlaces(description),
      source,
      style: "huggingFace",
      ...about,
      config: recordIn(config),
      newModel: (options) => new VisionLanguageModel(description, options),
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}
