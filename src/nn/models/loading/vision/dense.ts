/** Opens the folder of a model with a result for each pixel: SegFormer or Depth Anything. */
import { join } from "node:path";
import { openFor } from "../../../../io/safetensors/open.ts";
import type { LayerOptions } from "../../../layers/initialization.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import { DepthEstimator } from "../../vision/depth/estimator.ts";
import { processorIn } from "../../vision/processor/load_processor.ts";
import { SemanticSegmenter } from "../../vision/segformer/segmenter.ts";
import { generationOf } from "../generation.ts";
import type { Place } from "../names.ts";
import type { Opened } from "../opened.ts";
import { sourceOf } from "../packed/methods.ts";
import { Settings } from "../settings.ts";
import { withFixedNorms } from "./batch_norms.ts";
import { depthPlaces, describeDepth, isUnusedDepth } from "./depth_anything.ts";
import { describeSegformer, segformerPlaces } from "./segformer.ts";

/** The name of a supported architecture. */
export type DenseName = "segformer" | "depth_anything";

/** Whether a `model_type` is that of a model with a result for each pixel. */
export const isDense = (type: unknown): type is DenseName => type === "segformer" || type === "depth_anything";

/** A model that a config describes. */
export interface DescribedDense {
  readonly places: readonly Place[];
  readonly newModel: (options: LayerOptions) => SemanticSegmenter | DepthEstimator;
  readonly isUnused: (name: string) => boolean;
}

/** @throws {ArgumentError} for unsupported settings. */
export function describedDense(name: DenseName, settings: Settings): DescribedDense {
  if (name === "segformer") {
    const { description, labels } = describeSegformer(settings);
    const newModel = (options: LayerOptions) => labeled(new SemanticSegmenter(description, options), labels);
    return { places: segformerPlaces(description), newModel, isUnused: () => false };
  }
  const description = describeDepth(settings);
  return {
    places: depthPlaces(description),
    newModel: (options) => new DepthEstimator(description, options),
    isUnused: isUnusedDepth,
  };
}

const labeled = (model: SemanticSegmenter, labels: EncoderLabels): SemanticSegmenter =>
  Object.assign(model, { labels });

/** @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for unsupported settings. */
export function openDense(path: string, name: DenseName, config: object): Opened {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const processor = processorIn("loadModel", path); // before the weights, so that errors appear immediately
  const { places, newModel, isUnused } = describedDense(name, settings);
  const file = openFor("loadModel", path);
  try {
    const source = withFixedNorms(file, sourceOf(file, settings), BATCH_NORM_EPS);
    return {
      ...{ places, style: "huggingFace", generation: generationOf(path), chatTemplate: undefined },
      source: { ...source, isNeutral: (key) => isUnused(key) || (source.isNeutral?.(key) ?? false) },
      config: config as Readonly<Record<string, unknown>>,
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
