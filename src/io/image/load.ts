/** Pictures as tensors. */
import { constants, type FileHandle, open } from "node:fs/promises";
import { FileError, FileFormatError } from "../../core/errors.ts";
import { aNumber, aPath, choice, either, flag } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fileError } from "../file_errors.ts";
import { type ChannelOrder, hasAlpha, type ImageMode, imageModes, inMode, ownMode, toTensor } from "./channels.ts";
import { isPicture } from "./format.ts";
import { type ImageMetadata, type Sharp, sharp } from "./sharp.ts";

/** Options of {@link loadImage}. */
export interface LoadImageOptions {
  /** What each pixel has, whatever the file has; `"unchanged"` is what the file has. Default `"rgb"`. */
  mode?: ImageMode | "unchanged" | undefined;
  /** Where the axis of channels is: `"first"` is [C, H, W], `"last"` [H, W, C]. Default `"first"`. */
  channels?: ChannelOrder | undefined;
  /** Whether a picture is turned as its EXIF orientation says. Default true. */
  orient?: boolean | undefined;
  /** How many pixels a picture may have: a file of a few bytes may have billions. Default 89,478,485, as in Pillow. */
  maxPixels?: number | undefined;
}

/** A quarter of a gigabyte of 24-bit pixels. */
const MAX_PIXELS = 89_478_485;

const someBytes: Kind<Uint8Array> = {
  expected: "bytes (a Uint8Array)",
  parse: (value) => (value instanceof Uint8Array ? value : undefined),
};
/** @internal How pictures are read: the options. */
export const loading = {
  mode: named(choice(...imageModes, "unchanged"), "rgb"),
  channels: named(choice("first", "last"), "first"),
  orient: named(flag, true),
  maxPixels: named(aNumber(count), MAX_PIXELS),
} as const;
const loadParameters = parameters("loadImage", { source: operand(either(aPath, someBytes)), ...loading });

/**
 * The picture of a PNG, JPEG, WebP, GIF, TIFF or AVIF file: uint8, [channels, height, width]. It needs the package
 * `sharp`. Colors are converted to sRGB where the file has a profile, 16 bits cut to 8; gray is 0.299 R + 0.587 G +
 * 0.114 B to the nearest, and transparency is left out where the mode has no alpha. Of an animation it is the first
 * picture.
 *
 * @param source a path, or the bytes of a file
 *
 * @example
 * const x = await io.loadImage("cat.jpg"); // uint8 [3, 480, 640]
 *
 * @throws {PackageError} `packageMissing`. @throws {FileError} for a file that does not exist or cannot be read.
 * @throws {FileFormatError} `unknownFormat`; `damaged`, also for a file that is cut off; `tooManyPixels`.
 */
export async function loadImage(source: string | Uint8Array, options?: LoadImageOptions): Promise<Tensor<"uint8">>;
export async function loadImage(...values: unknown[]): Promise<Tensor> {
  const { source, mode, channels, orient, maxPixels } = loadParameters(values);
  const given = typeof source === "string" ? undefined : Uint8Array.from(source); // before anybody changes them
  const make = await sharp("loadImage");
  const path = typeof source === "string" ? source : "(bytes)";
  const fail: Fail = (code, message) => new FileFormatError("loadImage", code, path, message);
  const bytes = given ?? (await readWhole(path));
  if (!isPicture(bytes))
    throw fail("unknownFormat", "expected a PNG, JPEG, WebP, GIF, TIFF or AVIF file, got something else");
  const metadata = await decoded(() => make(bytes, { limitInputPixels: false }).metadata(), fail);
  checkSize(metadata, maxPixels, fail);
  const image = make(bytes, { limitInputPixels: maxPixels });
  const own = mode === "unchanged" ? ownMode(metadata) : mode;
  const { data, info } = await decoded(() => pixelsOf(orient ? image.autoOrient() : image, own), fail);
  return toTensor(inMode(Uint8Array.from(data), own), [info.height, info.width], channels);
}

type Fail = (code: string, message: string) => FileFormatError;

const pixelsOf = (image: Sharp, mode: ImageMode) => {
  const colored = image.toColourspace("srgb");
  const own = hasAlpha(mode) ? colored.ensureAlpha() : colored.removeAlpha();
  return own.raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
};

/** What the package says of a damaged file ends in a typed error. */
async function decoded<Result>(decode: () => Promise<Result>, fail: Fail): Promise<Result> {
  try {
    return await decode();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw fail("damaged", `expected a whole picture, got one that fails with "${reason.trim()}"`);
  }
}

function checkSize({ width, height }: ImageMetadata, maxPixels: number, fail: Fail): void {
  if (width * height <= maxPixels) return;
  throw fail(
    "tooManyPixels",
    `expected at most ${maxPixels} pixels, got ${height} x ${width}; the option maxPixels allows more`,
  );
}

/** The bytes of a regular file: a device or a pipe has no end. */
async function readWhole(path: string): Promise<Uint8Array> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile())
      throw new FileError("loadImage", "notAFile", path, "expected a file, got a folder, a device or a pipe");
    return await file.readFile();
  } catch (cause) {
    throw fileError("loadImage", path, cause);
  } finally {
    await file?.close();
  }
}
