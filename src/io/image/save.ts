/** Encodes and saves tensors as images. */
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, aPath, choice, flag } from "../../core/kinds.ts";
import { named, operand, parameters, required } from "../../core/parameters.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { permute } from "../../ops/view/permute.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { writeAtomically } from "../atomic.ts";
import type { ChannelOrder } from "./channels.ts";
import { formatOf, type WrittenFormat, writtenFormats } from "./format.ts";
import { type Sharp, sharp } from "./sharp.ts";

/** Options of {@link encodeImage} and {@link saveImage}. */
export interface SaveImageOptions {
  /** The position of the channel axis: `"first"` is [C, H, W], `"last"` [H, W, C]. Default `"first"`. */
  channels?: ChannelOrder | undefined;
  /** The quality of a JPEG or lossy WebP image, from 1 to 100. Default 80. */
  quality?: number | undefined;
  /** Uses lossless compression for WebP. Default false. */
  lossless?: boolean | undefined;
}

/** Options of {@link encodeImage}. */
export interface EncodeImageOptions extends SaveImageOptions {
  /** The format. */
  format: WrittenFormat;
}

const written = {
  channels: named(choice("first", "last"), "first"),
  quality: named(
    aNumber({
      holds: (value) => Number.isInteger(value) && value >= 1 && value <= 100,
      expected: "a whole number from 1 to 100",
    }),
    80,
  ),
  lossless: named(flag, false),
} as const;
type Written = Required<{ [Name in keyof SaveImageOptions]: NonNullable<SaveImageOptions[Name]> }>;

/**
 * Encodes an image to the bytes of a file. It requires the package `sharp`.
 *
 * @param x uint8 [channels, height, width], or [height, width]; 1 channel is gray, 2 gray with alpha, 3 RGB, 4 RGBA
 *
 * @example
 * const bytes = await io.encodeImage(x, { format: "webp", lossless: true });
 *
 * @throws {PackageError} `packageMissing`. @throws {DTypeError} `notUint8`. @throws {ShapeError} `notAnImage`.
 * @throws {ArgumentError} `tooLarge` if a side is longer than the format supports.
 */
export async function encodeImage(x: Tensor, options: EncodeImageOptions): Promise<Uint8Array>;
export async function encodeImage(...values: unknown[]): Promise<Uint8Array> {
  const { x, format, ...options } = encodeParameters(values);
  return encoded("encodeImage", x, format, options);
}
const encodeParameters = parameters("encodeImage", {
  x: operand(aTensor),
  format: required(choice(...writtenFormats)),
  ...written,
});

/**
 * Writes an image to a file, atomically: PNG, JPEG or WebP by its extension. It requires the package `sharp`.
 *
 * @param x uint8 [channels, height, width], or [height, width]; 1 channel is gray, 2 gray with alpha, 3 RGB, 4 RGBA
 *
 * @example
 * await io.saveImage("cat.png", x);
 *
 * @throws {ArgumentError} `unknownFormat` for any other extension; `tooLarge`. @throws {PackageError} `packageMissing`.
 * @throws {DTypeError} `notUint8`. @throws {ShapeError} `notAnImage`. @throws {FileError} `notFound`, `diskFull` …
 */
export async function saveImage(path: string, x: Tensor, options?: SaveImageOptions): Promise<void>;
export async function saveImage(...values: unknown[]): Promise<void> {
  const { path, x, ...options } = saveParameters(values);
  const format = formatOf(path);
  if (format === undefined)
    throw new ArgumentError(
      "saveImage",
      "unknownFormat",
      `expected path to end in .png, .jpg, .jpeg or .webp, got ${JSON.stringify(path)}`,
    );
  const bytes = await encoded("saveImage", x, format, options);
  await writeAtomically("saveImage", path, (file) => void file.write(bytes));
}
const saveParameters = parameters("saveImage", { path: operand(aPath), x: operand(aTensor), ...written });

/** The longest side that a format supports. */
const LONGEST: Readonly<Record<WrittenFormat, number>> = { png: 2 ** 31 - 1, jpeg: 65_535, webp: 16_383 };

async function encoded(
  operation: string,
  x: Tensor,
  format: WrittenFormat,
  { channels, quality, lossless }: Written,
): Promise<Uint8Array> {
  const image = pictureOf(operation, x, channels);
  const [height, width, depth] = image.sizes(3);
  const longest = Math.max(height, width);
  if (longest > LONGEST[format])
    throw new ArgumentError(
      operation,
      "tooLarge",
      `expected sides of at most ${LONGEST[format]} pixels for ${format}, got ${longest}`,
    );
  const pixels = Uint8Array.from((await image.data()) as Uint8Array);
  const make = await sharp(operation);
  const drawn = make(pixels, { raw: { width, height, channels: depth }, limitInputPixels: height * width });
  const colored = depth <= 2 ? drawn.toColourspace("b-w") : drawn;
  const { data } = await inFormat(colored, format, quality, lossless).toBuffer({ resolveWithObject: true });
  return Uint8Array.from(data);
}

function inFormat(image: Sharp, format: WrittenFormat, quality: number, lossless: boolean): Sharp {
  if (format === "png") return image.png();
  return format === "jpeg" ? image.jpeg({ quality }) : image.webp({ quality, lossless });
}

/** Converts to contiguous [height, width, channels]. */
function pictureOf(operation: string, x: Tensor, channels: ChannelOrder): Tensor {
  if (x.dtype !== "uint8")
    throw new DTypeError(operation, "notUint8", `expected uint8, got ${x.describe()}; convert with toDType()`);
  const picture = x.rank === 2 ? unsqueeze(x, -1) : channels === "first" && x.rank === 3 ? permute(x, [1, 2, 0]) : x;
  const depth = picture.shape[2] ?? 0;
  if (picture.rank === 3 && picture.size > 0 && depth >= 1 && depth <= 4) return contiguous(picture);
  const axes = channels === "first" ? "[channels, height, width]" : "[height, width, channels]";
  throw new ShapeError(
    operation,
    "notAnImage",
    `expected x to be ${axes} with 1 to 4 channels and at least one pixel, or [height, width], got ${x.describe()}`,
  );
}
