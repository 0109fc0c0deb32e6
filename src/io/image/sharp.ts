/**
 * The package that decodes and encodes pictures: sharp, over libvips. It is optional: nothing else needs it, and it is
 * loaded when a picture is first read or written.
 */
import { PackageError } from "../../core/errors.ts";

/** What is used of the package. Its own types are not here where it is not installed. */
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

/** What a file's header says. */
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

/** The version that package.json names. */
const VERSION = "0.35.5";

/**
 * The package's function.
 *
 * @throws {PackageError} `packageMissing`
 */
export async function sharp(operation: string): Promise<MakeSharp> {
  try {
    const { default: make } = await import("sharp");
    return make as unknown as MakeSharp;
  } catch (cause) {
    throw new PackageError(
      operation,
      "packageMissing",
      "sharp",
      `expected the package sharp, which decodes and encodes pictures, to be installed: bun add sharp@${VERSION}`,
      { cause },
    );
  }
}
