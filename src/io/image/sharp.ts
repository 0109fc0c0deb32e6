/**
 * The package that decodes and encodes images: sharp, based on libvips. It is optional, and is loaded when an image is
 * first read or written.
 */
import { PackageError } from "../../core/errors.ts";

/** The part of the package that is used. Its types are declared here because it may not be installed. */
export interface Sharp {
  metadata(): Promise<ImageMetadata>;
  autoOrient(): Sharp;
  toColourspace(space: "srgb" | "b-w"): Sharp;
  ensureAlpha(): Sharp;
  removeAlpha(): Sharp;
  raw(options?: { readonly depth: "uchar" }): Sharp;
  png(): Sharp;
  jpeg(options: { readonly quality: number }): Sharp;
  webp(options: { readonly quality: number; readonly lossless: boolean }): Sharp;
  toBuffer(options: { readonly resolveWithObject: true }): Promise<{
    readonly data: Uint8Array;
    readonly info: { readonly width: number; readonly height: number; readonly channels: number };
  }>;
}

/** The contents of a file's header. */
export interface ImageMetadata {
  readonly width: number;
  readonly height: number;
  readonly space: string;
  readonly hasAlpha: boolean;
}

/** Options of the package. */
export interface SharpOptions {
  readonly limitInputPixels?: number | false;
  readonly raw?: { readonly width: number; readonly height: number; readonly channels: number };
}

export type MakeSharp = (input: Uint8Array, options: SharpOptions) => Sharp;

/** The version in package.json. */
const VERSION = "0.35.5";

/**
 * Loads the package, and returns its function.
 *
 * @throws {PackageError} `packageMissing`
 */
export async function sharp(operation: string): Promise<MakeSharp> {
  try {
    const { default: make } = await import("sharp");
    return make as MakeSharp;
  } catch (cause) {
    throw new PackageError(
      operation,
      "packageMissing",
      "sharp",
      `expected the package sharp, which decodes and encodes images, to be installed: bun add sharp@${VERSION}`,
      { cause },
    );
  }
}
