/** Formats of pictures, by their first bytes and by names of files. */

/** Formats that pictures are written in. */
export const writtenFormats = ["png", "jpeg", "webp"] as const;
/** One of these. */
export type WrittenFormat = (typeof writtenFormats)[number];

/** The endings of file names, in small letters, with the format that each stands for. */
const endings: Readonly<Record<string, WrittenFormat>> = { png: "png", jpg: "jpeg", jpeg: "jpeg", webp: "webp" };

/** Endings of the files that can be read. */
export const readEndings: readonly string[] = [...Object.keys(endings), "gif", "tif", "tiff", "avif"];

/** In small letters, without the dot. */
export const endingOf = (path: string): string => /\.([^./\\]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";

export const formatOf = (path: string): WrittenFormat | undefined =>
  Object.hasOwn(endings, endingOf(path)) ? endings[endingOf(path)] : undefined;

/** What a file begins with; `?` is any byte. */
const signatures: readonly string[] = [
  "\x89PNG\r\n\x1a\n",
  "\xff\xd8\xff", // JPEG
  "RIFF????WEBP",
  ...["GIF87a", "GIF89a"],
  ...["II*\0", "MM\0*", "II+\0", "MM\0+"], // TIFF, and its form of 64 bits
  ...["????ftypavif", "????ftypavis"],
];

/**
 * Whether a file is of a format that is read, by its first bytes. What decodes other formats, such as SVG and PDF,
 * reads programs and other files: it is never called.
 */
export const isPicture = (bytes: Uint8Array): boolean =>
  signatures.some((signature) =>
    [...signature].every((letter, at) => letter === "?" || bytes[at] === letter.charCodeAt(0)),
  );
