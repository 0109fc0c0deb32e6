/** Opens the folder of ResNet, ConvNeXt, Swin, SegFormer, Depth Anything, DETR, RT-DETR, SAM or SAM 2. */

import { join } from "node:path";
import { recordIn } from "../../../../core/values.ts";
import type { LayerOptions } from "../../../layers/initialization.ts";
import { ImageClassifier } from "../../vision/classifier/classifier.ts";
import { DepthEstimator } from "../../vision/depth/estimator.ts";
import { Detr } from "../../vision/detr/detr.ts";
import { processorIn } from "../../vision/processor/load_processor.ts";
import { RtDetr } from "../../vision/rt_detr/rt_detr.ts";
import { Sam } from "../../vision/sam/sam.ts";
import { Sam2 } from "../../vision/sam/sam2.ts";
import { SemanticSegmenter } from "../../vision/segformer/segmenter.ts";
import { generationOf } from "../generation.ts";
import type { Place } from "../names.ts";
import { openWeights } from "../open_weights.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import { Settings } from "../settings.ts";
import { withFixedNorms } from "./batch_norms.ts";
import { classifierPlaces, describeClassifier, type ImageClassifierName, isSegformerClassifier } from "./classifier.ts";
import { depthPlaces, describeDepth, isUnusedDepth } from "./depth_anything.ts";
import { describeDetr, detrPlaces } from "./detr.ts";
import { describeRtDetr, isUnusedInRtDetr, rtDetrPlaces } from "./rt_detr.ts";
import { describeSam, isUnusedInSam, samPlaces } from "./sam.ts";
import { describeSam2, isUnusedInSam2, sam2Places } from "./sam2.ts";
import { describeSegformer, segformerPlaces } from "./segformer.ts";

/** The name of a supported architecture. */
export type ImageModelName = (typeof names)[number];

const names = [
  "resnet",
  "convnext",
  "convnextv2",
  "swin",
  "segformer",
  "depth_anything",
  "detr",
  "rt_detr",
  "sam",
  "sam2",
  "sam2_video",
] as const;

/** Whether a `model_type` belongs to one of these models. */
export const isImageModel = (type: unknown): type is ImageModelName => names.some((name) => name === type);

/** A model that a config describes. */
export interface DescribedImageModel {
  readonly places: readonly Place[];
  readonly newModel: (
    options: LayerOptions,
  ) => ImageClassifier | SemanticSegmenter | DepthEstimator | Detr | RtDetr | Sam | Sam2;
  readonly isUnused: (name: string) => boolean;
}

/** Returns the architecture of a classifier of images; undefined for other models. */
function classifierNameOf(name: ImageModelName, settings: Settings): ImageClassifierName | undefined {
  if (name === "resnet" || name === "convnext" || name === "convnextv2" || name === "swin") return name;
  return name === "segformer" && isSegformerClassifier(settings) ? name : undefined;
}

/** Returns the description of a model. @throws {ArgumentError} for unsupported settings. */
export function describedImageModel(name: ImageModelName, settings: Settings): DescribedImageModel {
  const classifier = classifierNameOf(name, settings);
  if (classifier !== undefined) {
    const { description, labels } = describeClassifier(classifier, settings);
    const newModel = (options: LayerOptions) => Object.assign(new ImageClassifier(description, options), { labels });
    // the decoder of a segmentation model or of one for masked images, the classifier of a folder that is loaded
    // without it, and Swin's tables of constants in older files
    return {
      places: classifierPlaces(description),
      newModel,
      isUnused: (key) => /^(decode_head|decoder|classifier)\.|\.(relative_position_index|mask_token)$/.test(key),
    };
  }
  if (name === "segformer") {
    const { description, labels } = describeSegformer(settings);
    const newModel = (options: LayerOptions) => Object.assign(new SemanticSegmenter(description, options), { labels });
    return { places: segformerPlaces(description), newModel, isUnused: () => false };
  }
  if (name === "rt_detr") {
    const { description, labels } = describeRtDetr(settings);
    const newModel = (options: LayerOptions) => Object.assign(new RtDetr(description, options), { labels });
    return { places: rtDetrPlaces(description), newModel, isUnused: isUnusedInRtDetr };
  }
  if (name === "detr") {
    const { description, labels } = describeDetr(settings);
    const newModel = (options: LayerOptions) => Object.assign(new Detr(description, options), { labels });
    // timm's networks have a classifier
    return { places: detrPlaces(description), newModel, isUnused: (key) => /\.conv_encoder\.model\.fc\./.test(key) };
  }
  if (name === "sam") {
    const description = describeSam(settings);
    const newModel = (options: LayerOptions) => new Sam(description, options);
    return { places: samPlaces(description), newModel, isUnused: isUnusedInSam };
  }
  if (name === "sam2" || name === "sam2_video") {
    const description = describeSam2(settings);
    const newModel = (options: LayerOptions) => new Sam2(description, options);
    return { places: sam2Places(description), newModel, isUnused: isUnusedInSam2 };
  }
  const description = describeDepth(settings);
  return {
    places: depthPlaces(description),
    newModel: (options) => new DepthEstimator(description, options),
    isUnused: isUnusedDepth,
  };
}

/**
 * Opens the folder of an image model. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for
 * unsupported settings.
 */
export function openImageModel(path: string, name: ImageModelName, config: object, prefix: string): Opened {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const processor = processorIn("loadModel", path); // before the weights, so that errors appear immediately
  const { places, newModel, isUnused } = describedImageModel(name, settings);
  const file = openWeights(path, prefix);
  try {
    const source = withFixedNorms(file, sourceOf(file, settings), BATCH_NORM_EPS);
    return {
      places,
      style: "huggingFace",
      generation: generationOf(path),
      chatTemplate: undefined,
      source: { ...source, isNeutral: (key) => isUnused(key) || (source.isNeutral?.(key) ?? false) },
      config: recordIn(config),
      newModel: (options) => Object.assign(newModel(options), { processor }),
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

/** PyTorch's default. */
const BATCH_NORM_EPS = 1e-5;
