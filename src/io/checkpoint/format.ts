/**
 * A checkpoint is a safetensors file, so that any program reads its weights. Its texts:
 *
 * | name | text |
 * |---|---|
 * | `sha256` | of the whole file, with zeros in place of these 64 digits |
 * | `format` | `orchard-checkpoint` |
 * | `version` | of this layout |
 * | `state` | all but the tensors, as JSON: see `tree.ts` |
 */
import { FileFormatError } from "../../core/errors.ts";
import type { SafetensorsFile } from "../safetensors/file.ts";

export const FORMAT = "orchard-checkpoint";
export const VERSION = "1";
/** What stands for the hash while it is not known. It comes first, so that nothing of a user's can be taken for it. */
export const NO_HASH: string = "0".repeat(64);

const namePattern = /^checkpoint-(\d+)\.safetensors$/;

/** The name of a step's file. */
export const checkpointName = (step: number): string => `checkpoint-${String(step).padStart(8, "0")}.safetensors`;

/** The step of a file's name; undefined where it is no checkpoint's. */
export function stepOf(name: string): number | undefined {
  const digits = namePattern.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Where the hash's digits begin among a header's bytes. */
export const hashPosition = (header: Uint8Array, hash: string): number => Buffer.from(header).indexOf(`"${hash}"`) + 1;

/** Compares a file with the hash that it holds. @throws {FileFormatError} where a bit is not as it was written. */
export async function checkHash(operation: string, file: SafetensorsFile): Promise<void> {
  const wanted = file.metadata["sha256"] ?? "";
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(withoutHash(file, wanted));
  for (const block of file.blocks(file.headerEnd)) {
    hasher.update(block);
    await turnOfEventLoop();
  }
  const came = hasher.digest("hex");
  if (came !== wanted)
    throw new FileFormatError(
      operation,
      "damaged",
      file.path,
      `its contents have the hash ${brief(came)}, and when it was written they had ${brief(wanted)}: it was altered, or the disk is failing`,
    );
}

function withoutHash(file: SafetensorsFile, hash: string): Uint8Array {
  const header = file.bytesBefore(file.headerEnd);
  const position = hashPosition(header, hash);
  if (hash.length === NO_HASH.length && position > 0) header.set(Buffer.from(NO_HASH), position);
  return header;
}

const brief = (hash: string): string => (hash === "" ? "none" : `${hash.slice(0, 12)}…`);

const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
