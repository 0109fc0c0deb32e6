/** Converts images to the input of a model. */
import { noGrad } from "../../../../autograd/modes.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../../../core/errors.ts";
import { aNumber, choice, either, flag, listOf } from "../../../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../../../core/parameters.ts";
import { keysOf } from "../../../../core/records.ts";
import { tupleOf } from "../../../../core/tuples.ts";
import { twoOf } from "../../../../data/transforms/transform.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { add, mul, sub } from "../../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../../ops/elementwise/clamp.ts";
import { div } from "../../../../ops/elementwise/division.ts";
import { floor } from "../../../../ops/elementwise/rounding.ts";
import { stack } from "../../../../ops/join/cat.ts";
import { pad } from "../../../../ops/join/pad.ts";
import { interpolate } from "../../../../ops/picture/interpolate.ts";
import { resizeBytes } from "../../../../ops/picture/pillow.ts";
import type { FilterName } from "../../../../ops/picture/taps.ts";
import { expand } from "../../../../ops/view/expand.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow } from "../../../../ops/view/slice.ts";
import { isFloat } from "../../../../tensor/dtype.ts";
import { aTensor } from "../../../../tensor/kinds.ts";
import { formatShape, sameShape } from "../../../../tensor/shape.ts";
import { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import type { ImageFilter, ImageProcessing } from "./description.ts";
import { anImageSize, resizedSize } from "./sizes.ts";

/** @internal The names of filters for resizing. */
export const filters: Readonly<Record<ImageFilter, FilterName | "nearest">> = {
  nearest: "nearest",
  box: "box",
  bilinear: "linear",
  hamming: "hamming",
  bicubic: "cubic",
  lanczos: "lanczos",
};

const isSide = (value: number): boolean => Number.isSafeInteger(value) && value > 0 && value < 2 ** 16;
const aSide = aNumber({ holds: isSide, expected: "a whole number above 0" });
const finite = aNumber({ holds: Number.isFinite, expected: "a finite number" });
const positive = aNumber({ holds: (value) => value > 0 && value < Infinity, expected: "a number above 0" });
const channels = (kind: Kind<number>): Kind<number[]> => ({
  expected: "a list of one number or three",
  parse(value, operation, name) {
    const found = listOf(kind, "").parse(value, operation, name);
    return found?.length === 1 || found?.length === 3 ? found : undefined;
  },
});

const readDescription = parameters("ImageProcessor", {
  size: named(anImageSize),
  filter: named(choice(...keysOf(filters))),
  crop: named(twoOf(aSide)),
  padding: named(twoOf(aSide)),
  rescale: named(positive),
  mean: named(channels(finite)),
  std: named(channels(positive)),
  resizesFloats: named(flag),
});

const readSize = parameters("ImageProcessor.sizeOf", { image: operand(twoOf(aSide)) });
const readProcess = parameters("ImageProcessor.process", {
  images: operand(either(aTensor, listOf(aTensor, "a list of tensors"))),
});

/**
 * Converts images to the input of a model: it resizes them as Pillow does, crops the center, rescales and normalizes.
 * Results equal those of Hugging Face's `transformers` within one step of a byte. {@link loadImageProcessor} makes it
 * from the files of a model; `loadModel` sets it as the `processor` of the model.
 *
 * @example
 * const processor = nn.loadImageProcessor("clip-vit-base-patch32");
 * processor.process(await io.loadImage("cat.jpg")); // float32 [1, 3, 224, 224]
 */
export class ImageProcessor {
  /** The steps and their settings. */
  readonly description: ImageProcessing;

  constructor(description: ImageProcessing);
  constructor(...values: unknown[]) {
    this.description = readDescription(values);
  }

  /** Returns the size of the result for an image of this height and width. @throws {ArgumentError} for other sizes. */
  sizeOf(image: readonly [height: number, width: number]): readonly [height: number, width: number];
  sizeOf(...values: unknown[]): readonly [height: number, width: number] {
    const { image } = readSize(values);
    const { size, crop, padding } = this.description;
    return padding ?? crop ?? (size ? resizedSize(size, image) : image);
  }

  /**
   * Converts images. No gradients flow through it.
   *
   * @param images an image or a list of images [channels, height, width]: uint8, or floats from 0 to 1, which are
   * rounded to bytes. Images of one channel become gray images of three; a fourth channel, alpha, is dropped
   * @returns float32, [images, 3, height, width]
   *
   * @throws {ArgumentError} `noImages` for an empty list. @throws {DTypeError} `notAnImage`. @throws {ShapeError}
   * `notAnImage`; `sizesDiffer` if the results have different sizes.
   */
  process(images: Tensor | readonly Tensor[]): Tensor<"float32">;
  process(...values: unknown[]): Tensor {
    const { images } = readProcess(values);
    const list = Tensor.isTensor(images) ? [images] : images;
    if (list.length === 0)
      throw new ArgumentError("ImageProcessor.process", "noImages", "expected at least one image, got an empty list");
    return tidy(() => noGrad(() => stack(sameSizes(list.map((image) => this.one(image))))));
  }

  private one(image: Tensor): Tensor {
    const { size, filter = "bilinear", crop, resizesFloats } = this.description;
    const x = inColor(bytesOf(image));
    const sides = tupleOf(x.shape.slice(1), 2);
    const target = size ? resizedSize(size, sides) : sides;
    const resized = resizesFloats ? resizedFloats(x, target, filter) : resizeBytes(x, target, filters[filter]);
    return this.padded(this.normalized(toDType(crop ? cropped(resized, crop) : resized, "float32")));
  }

  /** Pads an image to the size of `padding`. @throws {ShapeError} `notAnImage` for a larger image. */
  private padded(x: Tensor): Tensor {
    const { padding } = this.description;
    if (!padding) return x;
    const [down, across] = [padding[0] - x.shape[1], padding[1] - x.shape[2]];
    if (down >= 0 && across >= 0) return pad(x, [0, across, 0, down]);
    throw fail(`${x.shape[1]} x ${x.shape[2]} pixels, more than the padded size, ${padding.join(" x ")}`);
  }

  private normalized(x: Tensor): Tensor {
    const { rescale = 1, mean, std } = this.description;
    const perChannel = (values: readonly number[]) =>
      tensor(Float32Array.from(values), { shape: [values.length, 1, 1], dtype: "float32" });
    const scaled = mul(x, rescale);
    const centered = mean ? sub(scaled, perChannel(mean)) : scaled;
    return std ? div(centered, perChannel(std)) : centered;
  }
}

function fail(problem: string): ShapeError {
  return new ShapeError(
    "ImageProcessor.process",
    "notAnImage",
    `expected images [channels, height, width] with 1, 3 or 4 channels, got ${problem}`,
  );
}

/** @internal Returns the bytes of an image. @throws {DTypeError} @throws {ShapeError} `notAnImage` */
export function bytesOf(image: Tensor): Tensor {
  image.checkAlive("ImageProcessor.process");
  const channels = image.shape[0];
  if (image.rank !== 3 || image.size === 0 || (channels !== 1 && channels !== 3 && channels !== 4))
    throw fail(image.describe());
  if (image.dtype === "uint8") return image;
  if (isFloat(image.dtype)) return toDType(floor(add(mul(clamp(toDType(image, "float32"), 0, 1), 255), 0.5)), "uint8");
  throw new DTypeError(
    "ImageProcessor.process",
    "notAnImage",
    `expected images of uint8, or of floats from 0 to 1, got ${image.describe()}`,
  );
}

const inColor = (x: Tensor): Tensor => (x.shape[0] === 1 ? expand(x, [3, ...x.shape.slice(1)]) : narrow(x, 0, 0, 3));

/** As torchvision resizes floats: antialiased, without rounding. */
function resizedFloats(x: Tensor, size: readonly [number, number], filter: ImageFilter): Tensor {
  const mode = filter === "bicubic" ? "bicubic" : "bilinear";
  if (x.shape[1] === size[0] && x.shape[2] === size[1]) return x;
  const batch: Tensor = reshape(toDType(x, "float32"), [1, ...x.shape]);
  if (filter === "nearest")
    return reshape(interpolate(batch, { size: [...size], mode: "nearest-exact" }), [3, ...size]);
  return reshape(interpolate(batch, { size: [...size], mode, antialias: true }), [3, ...size]);
}

/** Crops the center, rounding down. A border is larger on the upper and left sides. */
function cropped(x: Tensor, [height, width]: readonly [number, number]): Tensor {
  const [missingRows, missingColumns] = [Math.max(0, height - x.shape[1]), Math.max(0, width - x.shape[2])];
  const [above, before] = [Math.ceil(missingRows / 2), Math.ceil(missingColumns / 2)];
  const whole =
    missingRows + missingColumns > 0 ? pad(x, [before, missingColumns - before, above, missingRows - above]) : x;
  const [top, left] = [whole.shape[1] - height, whole.shape[2] - width].map((gap) => Math.floor(gap / 2));
  return narrow(narrow(whole, 1, top, height), 2, left, width);
}

function sameSizes(images: readonly Tensor[]): readonly Tensor[] {
  const other = images.find(({ shape }) => !sameShape(shape, images[0].shape));
  if (!other) return images;
  throw new ShapeError(
    "ImageProcessor.process",
    "sizesDiffer",
    `expected results of one size, got ${formatShape(images[0].shape)} and ${formatShape(other.shape)}; ` +
      "process images of different sizes one at a time",
  );
}
