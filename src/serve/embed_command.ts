/** The implementation of `orchard embed`. */
import { readFileSync } from "node:fs";
import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { ArgumentError, OrchardError } from "../core/errors.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { saveNpy } from "../io/numpy/npy.ts";
import { embed } from "../nn/generation/embed.ts";
import { loadAnyServed } from "./load.ts";

export interface EmbedFlags {
  readonly model: string;
  readonly out: string;
  readonly batch: number;
  readonly promptName?: string;
  readonly truncateDim?: number;
  readonly backend?: BackendName;
  /** Whether to use only the cache, without a download. */
  readonly offline?: boolean;
}

/** Runs `orchard embed`. Returns the exit code. */
export async function runEmbed(file: string, flags: EmbedFlags): Promise<number> {
  const { model: folder, out, backend, offline, ...options } = flags;
  try {
    if (backend) setBackend(backend);
    const texts = linesOf(file);
    const served = await loadAnyServed(folder, { offline });
    if (!("encoder" in served)) {
      const got = "model" in served ? "a language model" : "a speech recognition model";
      throw new ArgumentError("embed", "notAnEncoder", `expected an encoder, got ${got} in ${folder}`);
    }
    using vectors = await embed(served.encoder, texts, options);
    await saveNpy(out, vectors);
    console.log(`wrote ${vectors.shape[0]} vectors of ${vectors.shape[1]} numbers to ${out}`);
    return 0;
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    console.error(error.message);
    return 1;
  }
}

/** Returns the lines of a file; a line break at its end does not begin another. @throws {ArgumentError} `noTexts` */
function linesOf(file: string): string[] {
  const contents = withFileErrors("embed", file, () => readFileSync(file, "utf8"));
  if (contents === "")
    throw new ArgumentError("embed", "noTexts", `expected at least one line in ${file}, got an empty file`);
  return contents.replace(/\r?\n$/, "").split(/\r?\n/);
}
