/** Finds the masks of objects from points and boxes. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { isArray } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import { recordIn } from "../../core/values.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { gt } from "../../ops/elementwise/comparison.ts";
import { interpolate } from "../../ops/picture/interpolate.ts";
import { narrow, select } from "../../ops/view/slice.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";
import { inEvaluation } from "../layers/module.ts";
import { resizedSize } from "../models/vision/processor/sizes.ts";
import type { SamMasks } from "../models/vision/sam/mask_decoder.ts";
import type { ImagePoint, SamPrompt } from "../models/vision/sam/prompted.ts";
import type { Sam } from "../models/vision/sam/sam.ts";
import { Sam2, type Sam2Features } from "../models/vision/sam/sam2.ts";
import { type ImageInput, pixelsOf, processorOf, type Sides } from "./images.ts";

/** A candidate mask of an object. */
export interface ObjectMask {
  /** Whether each pixel belongs to the object: bool [height, width]. */
  readonly mask: Tensor<"bool">;
  /** The predicted quality of the mask: about its overlap with the object (IoU), up to 1. */
  readonly score: number;
}

/** Options of `segmentImage` for a model with prompts. */
export interface PromptOptions {
  /** The locations of the objects, in pixels of the image. */
  readonly objects: readonly SamPrompt[];
  /**
   * Whether to return several masks for an ambiguous prompt, such as a part of an object and the whole object. For a
   * box or several points, one mask is enough. Default true.
   */
  readonly several?: boolean | undefined;
}

const isPoint = (value: unknown, count = 2): boolean =>
  isArray(value) && value.length === count && value.every((each) => typeof each === "number" && Number.isFinite(each));
const arePoints = (value: unknown): boolean =>
  value === undefined || (isArray(value) && value.every((at) => isPoint(at)));

/** @internal */
export const aPrompt: Kind<SamPrompt> = {
  expected: "an object with points, outside or a box, in pixels",
  parse(value) {
    if (typeof value !== "object" || value === null) return undefined;
    const { points, outside, box, ...others } = recordIn(value);
    const isFine = arePoints(points) && arePoints(outside) && (box === undefined || isPoint(box, 4));
    const count = [points, outside].reduce<number>((sum, list) => sum + (isArray(list) ? list.length : 0), 0);
    const isKnown = Object.keys(others).length === 0;
    return isFine && isKnown && (count > 0 || box !== undefined) ? value : undefined;
  },
};

/** @internal Finds the masks of each object in an image, the best first. */
export async function promptedMasks(
  operation: string,
  model: Sam | Sam2,
  image: ImageInput,
  { objects, several = true }: PromptOptions,
): Promise<ObjectMask[][]> {
  const processor = processorOf(operation, model);
  let size: Sides = [0, 0];
  const pixels = await pixelsOf(processor, image, (given) => {
    size = given;
  });
  await yieldToEventLoop();
  const { image: side } = model.description;
  const weightDType = model.firstWeight.dtype;
  const { size: target } = processor.description;
  const resized = target ? resizedSize(target, size) : size;
  if (resized.some((length) => length > side))
    throw new ArgumentError(
      operation,
      "otherProcessor",
      `expected a processor whose images have at most ${side} x ${side} pixels, got ${resized.join(" x ")}`,
    );
  const features = tidy(() => noGrad(() => inEvaluation(model, () => featuresOf(model, toDType(pixels, weightDType)))));
  pixels.dispose();
  const found: ObjectMask[][] = [];
  for (const object of objects) {
    await yieldToEventLoop();
    const prompt = placedPrompt(object, size, resized);
    const masks = () => inEvaluation(model, () => masksFrom(model, features, prompt));
    found.push(tidy(() => noGrad(() => masksOf(model, masks(), several, size, resized))));
  }
  for (const each of [features.embedding, ...(features.finer ?? [])]) each.dispose();
  return found;
}

/** The features of one image. Only SAM 2 has features of finer levels too. */
type Features = Pick<Sam2Features, "embedding"> & Partial<Sam2Features>;

const featuresOf = (model: Sam | Sam2, pixels: Tensor): Features =>
  model instanceof Sam2 ? model.forward(pixels) : { embedding: model.forward(pixels) };

const masksFrom = (model: Sam | Sam2, { embedding, finer }: Features, prompt: SamPrompt): SamMasks =>
  model instanceof Sam2 ? model.masks({ embedding, finer: finer! }, prompt) : model.masks(embedding, prompt);

/** Converts coordinates in the image to coordinates in the processed image. */
function placedPrompt({ points, outside, box }: SamPrompt, size: Sides, resized: Sides): SamPrompt {
  const placed = ([x, y]: ImagePoint): ImagePoint => [(x * resized[1]) / size[1], (y * resized[0]) / size[0]];
  const corners = box && ([...placed([box[0], box[1]]), ...placed([box[2], box[3]])] as const);
  return { points: points?.map(placed), outside: outside?.map(placed), box: corners };
}

/**
 * Resizes logits to the image. SAM's images keep their aspect ratio and are padded, so its logits are first resized to
 * the model's image size and cropped.
 */
function masksOf(
  model: Sam | Sam2,
  found: SamMasks,
  several: boolean,
  size: Sides,
  [rows, columns]: Sides,
): ObjectMask[] {
  const { masks, scores } = found;
  const { image } = model.description;
  const [first, count] = several ? [1, masks.shape[0] - 1] : [model.singleMask(found), 1];
  const chosen = unsqueeze(toDType(narrow(masks, 0, first, count), "float32"), 0);
  const options = { mode: "bilinear", alignCorners: false } as const;
  const cropped = () => {
    const whole = interpolate(chosen, { size: [image, image], ...options });
    return contiguous(narrow(narrow(whole, 2, 0, rows), 3, 0, columns));
  };
  const inside = gt(interpolate(model.cropsMasks ? cropped() : chosen, { size: [...size], ...options }), 0);
  const values = Array.from(scores.dataSync(), Number);
  return Array.from({ length: count }, (_, at) => ({
    mask: keep(contiguous(select(select(inside, 0, 0), 0, at))),
    score: values[first + at],
  })).sort((a, b) => b.score - a.score);
}
