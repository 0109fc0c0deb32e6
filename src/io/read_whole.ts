import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { FileError } from "../core/errors.ts";
import { fileError } from "./file_errors.ts";

/** Reads a regular file; a device or a pipe might have no end. @throws {FileError} */
export async function readWhole(operation: string, path: string): Promise<Uint8Array> {
  let file: FileHandle | undefined;
  try {
    const { open } = await import("node:fs/promises"); // loading it takes 2 ms
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile())
      throw new FileError(operation, "notAFile", path, "expected a file, got a folder, a device or a pipe");
    return await file.readFile();
  } catch (cause) {
    throw fileError(operation, path, cause);
  } finally {
    await file?.close();
  }
}
