import { ArgumentError } from "../../core/errors.ts";
import { text } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { ImageClassifier } from "../models/vision/classifier/classifier.ts";
import type { DualEncoder } from "../models/vision/dual_encoder.ts";
import type { VisionEncoder } from "../models/vision/vision_encoder.ts";
import { aCount, sigmoidOf, softmaxOf, someTexts } from "./batches.ts";
import { type Classification, labeled } from "./classify.ts";
import { embedDual } from "./embed_dual.ts";
import {
  anyVision,
  IMAGE_BATCH,
  type ImageBatchingOptions,
  type ImageInput,
  overImages,
  someImages,
} from "./images.ts";

/** Options of {@link classifyImages} for a model of images and texts. */
export interface LabelImagesOptions extends ImageBatchingOptions {
  /** The labels to choose from, at least one. */
  readonly labels: readonly string[];
  /** A text with `{}` in place of the label. Default `"This is a photo of {}."`. */
  readonly template?: string | undefined;
}

const readCall = parameters("classifyImages", {
  model: operand(anyVision),
  images: operand(someImages),
  labels: named(someTexts),
  template: named(text),
  batch: named(aCount, IMAGE_BATCH),
});
type Call = ReturnType<typeof readCall>;

/**
 * Classifies images. A classifier uses the labels that it was trained on; a model of images and texts such as CLIP
 * accepts any labels. Images are processed by the model's `processor`.
 *
 * @param model an image encoder with a head (`…ForImageClassification`), or a model of images and texts
 * @param images at least one: paths, or tensors [channels, height, width] of uint8, or of floats from 0 to 1
 * @returns for each image all labels, the most probable first. Probabilities of an image add up to 1, except in models
 * for several labels at once, such as SigLIP
 *
 * @example
 * const { model } = await nn.loadModel<nn.VisionEncoder>("vit-base-patch16-224");
 * const [labels] = await nn.classifyImages(model, ["cat.jpg"]);
 * labels[0]; // { label: "tabby", score: 0.93 }
 *
 * @example
 * const { model } = await nn.loadModel<nn.DualEncoder>("clip-vit-base-patch32");
 * await nn.classifyImages(model, ["cat.jpg"], { labels: ["a cat", "a dog"] });
 *
 * @throws {ArgumentError} `otherTask` for an image encoder without a head; `noLabels`, or `unusedOption` for labels
 * that a classifier doesn't support; `noPlace` for a template without `{}`; and as {@link embedImages}.
 */
export function classifyImages(
  model: VisionEncoder | ImageClassifier,
  images: readonly ImageInput[],
  options?: ImageBatchingOptions,
): Promise<Classification[][]>;
export function classifyImages(
  model: DualEncoder,
  images: readonly ImageInput[],
  options: LabelImagesOptions,
): Promise<Classification[][]>;
export async function classifyImages(...values: unknown[]): Promise<Classification[][]> {
  const call = readCall(values);
  return "vision" in call.model ? byWords(call, call.model) : byHead(call, call.model);
}

async function byHead(
  { images, batch, labels, template }: Call,
  model: VisionEncoder | ImageClassifier,
): Promise<Classification[][]> {
  if (!model.head)
    throw new ArgumentError(
      "classifyImages",
      "otherTask",
      "expected a model with a classifier, got one without a head",
    );
  if (labels !== undefined || template !== undefined)
    throw new ArgumentError(
      "classifyImages",
      "unusedOption",
      "labels and template require a model of images and texts, got a classifier; omit them",
    );
  const rows = await overImages("classifyImages", model, images, batch, (pixels) => model.forward(pixels));
  return rows.map((scores) => labeled(model, scores));
}

async function byWords(call: Call, model: DualEncoder): Promise<Classification[][]> {
  const { images, labels, template = "This is a photo of {}.", batch } = call;
  if (!labels || labels.length === 0)
    throw new ArgumentError("classifyImages", "noLabels", "expected labels with a model of images and texts, got none");
  if (!template.includes("{}"))
    throw new ArgumentError("classifyImages", "noPlace", `expected a template that contains {}, got "${template}"`);
  const texts = labels.map((label) => template.replace("{}", () => label));
  const vectors = await embedDual("classifyImages", model, texts, { batch, normalize: false });
  try {
    const rows = await overImages("classifyImages", model, images, batch, (pixels) =>
      model.score(model.embedImages(pixels), vectors),
    );
    const probabilities = model.description.sigmoid ? (row: Float32Array) => Array.from(row, sigmoidOf) : softmaxOf;
    return rows.map((row) =>
      probabilities(row)
        .map((score, index) => ({ label: labels[index], score }))
        .sort((a, b) => b.score - a.score),
    );
  } finally {
    vectors.dispose();
  }
}
