/** Detects image formats by first bytes and by file names. */

/** The formats that images can be written in. */
export const writtenFormats = ["png", "jpeg", "webp"] as const;
/** A format that images can be written in. */
export type WrittenFormat = (typeof writtenFormats)[number];

/** The formats of file extensions, in lower case. */
const endings: Readonly<Record<string, WrittenFormat>> = { png: "png", jpg: "jpeg", jpeg: "jpeg", webp: "webp" };

/** The extensions of files that can be read. */
export const readEndings: readonly string[] = [...Object.keys(endings), "gif", "tif", "tiff", "avif"];

/** Returns the extension of a path, in lower case, without the dot. */
export const endingOf = (path: string): string => /\.([^./\\]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";

export const formatOf = (path: string): WrittenFormat | undefined =>
  Object.hasOwn(endings, endingOf(path)) ? endings[endingOf(path)] : undefined;

/** The first bytes of each format; `?` is any byte. */
const signatures: readonly string[] = [
  "\x89PNG\r\n\x1a\n",
  "\xff\xd8\xff", // JPEG
  "RIFF????WEBP",
  "GIF87a",
  "GIF89a",
  "II*\0",
  "MM\0*",
  "II+\0",
  "MM\0+", // TIFF and BigTIFF
  "????ftypavif",
  "????ftypavis",
];

/**
 * Whether a file has a supported format, by its first bytes. Decoders of other formats, such as SVG and PDF, are never
 * called, because they may interpret programs and read other files.
 */
export const isPicture = (bytes: Uint8Array): boolean =>
  signatures.some((signature) =>
    [...signature].every((letter, at) => letter === "?" || bytes[at] === letter.charCodeAt(0)),
  );
