/** Opens the folder of an image encoder, or of a model of images and texts. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { recordIn } from "../../../../core/values.ts";
import { loadTokenizer } from "../../../../text/load_tokenizer.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import { ObjectDetector } from "../../vision/detector.ts";
import { DualEncoder } from "../../vision/dual_encoder.ts";
import { processorIn } from "../../vision/processor/load_processor.ts";
import type { ImageProcessor } from "../../vision/processor/processor.ts";
import { VisionEncoder } from "../../vision/vision_encoder.ts";
import { chatTemplateOf, generationOf } from "../generation.ts";
import { openWeights } from "../open_weights.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import { Settings } from "../settings.ts";
import type { WeightSource } from "../source.ts";
import { type DualName, dualArchitectures, isDual, type VisionName } from "./architectures.ts";
import {
  type DescribedDetector,
  type DescribedDual,
  type DescribedVision,
  describeDetector,
  describeDual,
  describeVision,
  isDetector,
  visionPart,
} from "./describe.ts";
import { detectorPlaces, dualPlaces, isWithoutUse, visionPlaces } from "./names.ts";

type Parts = Pick<Opened, "places" | "newModel">;

/**
 * Opens the folder of an image encoder. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for
 * unsupported settings.
 */
export function openVision(path: string, name: VisionName | DualName, config: object, prefix: string): Opened {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const about = { generation: generationOf(path), chatTemplate: chatTemplateOf(path) };
  const processor = processorIn("loadModel", path); // before the weights, so that errors appear immediately
  const file = openWeights(path, prefix);
  try {
    const source = sourceOf(file, settings);
    const isThere = (weight: RegExp) => source.names.some((each) => weight.test(each));
    const described = describedVision(name, settings, isThere);
    const isBoth = "text" in described.description;
    return {
      ...partsOf(path, described, processor),
      ...about,
      style: "huggingFace",
      source: withoutUnused(source, isBoth),
      config: recordIn(config),
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

type Described = (DescribedVision | DescribedDual | DescribedDetector) & {
  readonly labels?: EncoderLabels | undefined;
};

/** Returns the description of the model that a config names: an image encoder, or encoders of images and texts. */
export function describedVision(
  name: VisionName | DualName,
  settings: Settings,
  isThere: (weight: RegExp) => boolean,
): Described {
  if (!isDual(name))
    return isDetector(settings) ? describeDetector(name, settings) : describeVision(name, settings, isThere);
  if (isOfBoth(settings)) return describeDual(name, settings);
  return describeVision(dualArchitectures[name].vision, visionPart(settings), isThere);
}

/** Whether the class of a config has both encoders. @throws {ArgumentError} `unsupportedHead` */
function isOfBoth(config: Settings): boolean {
  const list = config.get("architectures");
  const className = Array.isArray(list) ? `${list[0] ?? "Model"}` : "Model";
  if (/Vision\w*$|ForImageClassification$/.test(className)) return false;
  if (/^[A-Za-z0-9]*Model$/.test(className) && !/Text/.test(className)) return true;
  throw config.refused(
    "unsupportedHead",
    `expected architectures to name a model of images and texts, an image encoder or a classifier, got "${className}"`,
  );
}

function partsOf(path: string, described: Described, processor: ImageProcessor | undefined): Parts {
  const { description } = described;
  if ("text" in description) {
    const name = description.architecture as DualName;
    const tokenizer = existsSync(join(path, "tokenizer.json")) ? loadTokenizer(path) : undefined;
    return {
      places: dualPlaces(name, dualArchitectures[name].vision, description),
      newModel: (options) => Object.assign(new DualEncoder(description, options), { processor, tokenizer }),
    };
  }
  const { labels } = described;
  if ("labels" in description)
    return {
      places: detectorPlaces(described.name as VisionName, description),
      newModel: (options) => Object.assign(new ObjectDetector(description, options), { processor, labels }),
    };
  return {
    places: visionPlaces(described.name as VisionName, description),
    newModel: (options) => Object.assign(new VisionEncoder(description, options), { processor, labels }),
  };
}

/** Ignores the weights of other heads, and of the other encoder. */
const withoutUnused = (source: WeightSource, isBoth: boolean): WeightSource => ({
  ...source,
  isNeutral: (name) => isWithoutUse(name, isBoth) || (source.isNeutral?.(name) ?? false),
});
