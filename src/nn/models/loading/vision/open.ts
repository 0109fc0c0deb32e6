/** Opens the folder of an image encoder, or of a model of images and texts. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openFor } from "../../../../io/safetensors/open.ts";
import { loadTokenizer } from "../../../../text/load_tokenizer.ts";
import { DualEncoder } from "../../vision/dual_encoder.ts";
import { processorIn } from "../../vision/processor/load_processor.ts";
import type { ImageProcessor } from "../../vision/processor/processor.ts";
import { VisionEncoder } from "../../vision/vision_encoder.ts";
import { chatTemplateOf, generationOf } from "../generation.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import { Settings } from "../settings.ts";
import type { WeightSource } from "../source.ts";
import { type DualName, dualArchitectures, isDual, type VisionName } from "./architectures.ts";
import { describeDual, describeVision, visionPart } from "./describe.ts";
import { dualPlaces, isWithoutUse, visionPlaces } from "./names.ts";

type Parts = Pick<Opened, "places" | "newModel">;

/** @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for unsupported settings. */
export function openVision(path: string, name: VisionName | DualName, config: object): Opened {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const about = { generation: generationOf(path), chatTemplate: chatTemplateOf(path) };
  const processor = processorIn("loadModel", path); // before the weights, so that errors appear immediately
  const file = openFor("loadModel", path);
  try {
    const source = sourceOf(file, settings);
    const isBoth = isDual(name) && isOfBoth(settings);
    const parts = isBoth
      ? partsOfDual(path, name, settings, processor)
      : partsOfVision(
          isDual(name) ? dualArchitectures[name].vision : name,
          isDual(name) ? visionPart(settings) : settings,
          source,
          processor,
        );
    return {
      ...{ ...parts, ...about, source: withoutUnused(source, isBoth), style: "huggingFace" },
      config: config as Readonly<Record<string, unknown>>,
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
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

function partsOfVision(
  name: VisionName,
  settings: Settings,
  source: WeightSource,
  processor: ImageProcessor | undefined,
): Parts {
  const isThere = (weight: RegExp) => source.names.some((each) => weight.test(each));
  const { description, labels } = describeVision(name, settings, isThere);
  return {
    places: visionPlaces(name, description),
    newModel(options) {
      const model = new VisionEncoder(description, options);
      model.processor = processor;
      model.labels = labels;
      return model;
    },
  };
}

function partsOfDual(path: string, name: DualName, settings: Settings, processor: ImageProcessor | undefined): Parts {
  const { description } = describeDual(name, settings);
  const tokenizer = existsSync(join(path, "tokenizer.json")) ? loadTokenizer(path) : undefined;
  return {
    places: dualPlaces(name, dualArchitectures[name].vision, description),
    newModel(options) {
      const model = new DualEncoder(description, options);
      model.processor = processor;
      model.tokenizer = tokenizer;
      return model;
    },
  };
}

/** Ignores the weights of other heads, and of the other encoder. */
const withoutUnused = (source: WeightSource, isBoth: boolean): WeightSource => ({
  ...source,
  isNeutral: (name) => isWithoutUse(name, isBoth) || (source.isNeutral?.(name) ?? false),
});
