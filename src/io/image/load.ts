/** Loads images as tensors. */
import { FileFormatError } from "../../core/errors.ts";
import { aNumber, aPath, choice, either, flag, someBytes } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { readWhole } from "../read_whole.ts";
import { type ChannelOrder, hasAlpha, type ImageMode, imageModes, inMode, modeOf, toTensor } from "./channels.ts";
import { isPicture } from "./format.ts";
import { type ImageMetadata, type Sharp, sharp } from "./sharp.ts";

/** Options of {@link loadImage}. */
export interface LoadImageOptions {
  /** The channels to which the image is converted; `"unchanged"` keeps those of the file. Default `"rgb"`. */
  mode?: ImageMode | "unchanged" | undefined;
  /** The position of the channel axis: `"first"` is [C, H, W], `"last"` [H, W, C]. Default `"first"`. */
  channels?: ChannelOrder | undefined;
  /** Rotates the image by its EXIF orientation. Default true. */
  orient?: boolean | undefined;
  /** The maximum number of pixels: a small file may decode to billions. Default 89,478,485, as in Pillow. */
  maxPixels?: number | undefined;
}

/** A quarter of a gigabyte as 24-bit pixels. */
const MAX_PIXELS = 89_478_485;

/** @internal The options for reading images. */
export const loading = {
  mode: named(choice(...imageModes, "unchanged"), "rgb"),
  channels: named(choice("first", "last"), "first"),
  orient: named(flag, true),
  maxPixels: named(aNumber(count), MAX_PIXELS),
} as const;
const loadParameters = parameters("loadImage", { source: operand(either(aPath, someBytes)), ...loading });

/**
 * Loads the image of a PNG, JPEG, WebP, GIF, TIFF or AVIF file: uint8, [channels, height, width]. It requires the
 * package `sharp`. Colors are converted to sRGB if the file has a profile, and 16 bits are truncated to 8. Gray is
 * 0.299 R + 0.587 G + 0.114 B to the nearest. Transparency is dropped if the mode has no alpha. For an animation, it
 * loads the first frame.
 *
 * @param source a path, or the bytes of a file
 *
 * @example
 * const x = await io.loadImage("cat.jpg"); // uint8 [3, 480, 640]
 *
 * @throws {PackageError} `packageMissing`. @throws {FileError} for a file that does not exist or can't be read.
 * @throws {FileFormatError} `unknownFormat`; `damaged`, also for a truncated file; `tooManyPixels`.
 */
export async function loadImage(source: string | Uint8Array, options?: LoadImageOptions): Promise<Tensor<"uint8">>;
export async function loadImage(...values: unknown[]): Promise<Tensor> {
  const { source, mode, channels, orient, maxPixels } = loadParameters(values);
  const given = typeof source === "string" ? undefined : Uint8Array.from(source); // the caller may change the bytes
  const make = await sharp("loadImage");
  const path = typeof source === "string" ? source : "(bytes)";
  const fail: Fail = (code, message) => new FileFormatError("loadImage", code, path, message);
  const bytes = given ?? (await readWhole("loadImage", path));
  if (!isPicture(bytes))
    throw fail("unknownFormat", "expected a PNG, JPEG, WebP, GIF, TIFF or AVIF file, got another format");
  const metadata = await decoded(() => make(bytes, { limitInputPixels: false }).metadata(), fail);
  checkSize(metadata, maxPixels, fail);
  const image = make(bytes, { limitInputPixels: maxPixels });
  const target = mode === "unchanged" ? modeOf(metadata) : mode;
  const { data, info } = await decoded(() => pixelsOf(orient ? image.autoOrient() : image, target), fail);
  return toTensor(inMode(Uint8Array.from(data), target), [info.height, info.width], channels);
}

type Fail = (code: string, message: string) => FileFormatError;

const pixelsOf = (image: Sharp, mode: ImageMode) => {
  const colored = image.toColourspace("srgb");
  const converted = hasAlpha(mode) ? colored.ensureAlpha() : colored.removeAlpha();
  return converted.raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
};

/** Converts the package's errors for a damaged file to typed errors. */
async function decoded<Result>(decode: () => Promise<Result>, fail: Fail): Promise<Result> {
  try {
    return await decode();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw fail("damaged", `expected a complete image, but decoding failed with "${reason.trim()}"`);
  }
}

function checkSize({ width, height }: ImageMetadata, maxPixels: number, fail: Fail): void {
  if (width * height <= maxPixels) return;
  throw fail(
    "tooManyPixels",
    `expected at most ${maxPixels} pixels, got ${height} x ${width}; the option maxPixels allows more`,
  );
}
