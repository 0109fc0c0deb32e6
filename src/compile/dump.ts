/** Writes the sources of generated kernels to files. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withFileErrors } from "../io/file_errors.ts";
import type { GeneratedSource } from "./replay.ts";

/** Writes each source to `<kernel>-<hash of the text>.metal`. Equal kernels share a file. @throws {FileError} */
export function dumpSources(folder: string, sources: readonly GeneratedSource[]): void {
  withFileErrors("compile", folder, () => mkdirSync(folder, { recursive: true }));
  for (const { kernel, text } of sources) {
    const hash = new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 12);
    const path = join(folder, `${kernel}-${hash}.metal`);
    withFileErrors("compile", path, () => writeFileSync(path, text));
  }
}
