/**
 * A checkpoint is a safetensors file, so that any program can read its weights. Its metadata:
 *
 * | key | value |
 * |---|---|
 * | `sha256` | the hash of the whole file, computed with zeros in place of these 64 digits |
 * | `format` | `orchard-checkpoint` |
 * | `version` | the version of this layout |
 * | `state` | everything except tensors, as JSON: see `tree.ts` |
 */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { FileFormatError } from "../../core/errors.ts";
import type { SafetensorsFile } from "../safetensors/file.ts";

export const FORMAT = "orchard-checkpoint";
export const VERSION = "1";
/** The placeholder for the hash. It is the first metadata entry, so that no user's text can be mistaken for it. */
export const NO_HASH: string = "0".repeat(64);

const namePattern = /^checkpoint-(\d+)\.safetensors$/;

/** Returns the file name of a step's checkpoint. */
export const checkpointName = (step: number): string => `checkpoint-${String(step).padStart(8, "0")}.safetensors`;

/** Returns the step in a file name; undefined if it is not a checkpoint's name. */
export function stepOf(name: string): number | undefined {
  const digits = namePattern.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Returns the position of the hash's digits in a header. */
export const hashPosition = (header: Uint8Array, hash: string): number => Buffer.from(header).indexOf(`"${hash}"`) + 1;

/** Verifies a file against the hash in its metadata. @throws {FileFormatError} if any bit differs. */
export async function checkHash(operation: string, file: SafetensorsFile): Promise<void> {
  const expected = file.metadata["sha256"] ?? "";
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(withoutHash(file, expected));
  for (const block of file.blocks(file.headerEnd)) {
    hasher.update(block);
    await yieldToEventLoop();
  }
  const got = hasher.digest("hex");
  if (got !== expected)
    throw new FileFormatError(
      operation,
      "damaged",
      file.path,
      `expected contents with the hash ${brief(expected)}, got ${brief(got)}: it was altered, or the disk is failing`,
    );
}

function withoutHash(file: SafetensorsFile, hash: string): Uint8Array {
  const header = file.bytesBefore(file.headerEnd);
  const position = hashPosition(header, hash);
  if (hash.length === NO_HASH.length && position > 0) header.set(Buffer.from(NO_HASH), position);
  return header;
}

const brief = (hash: string): string => (hash === "" ? "none" : `${hash.slice(0, 12)}…`);
