import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { enumerations } from "../backend/enumeration.ts";
import { metalContext } from "../backend/metal/context.ts";
import { createLibrary } from "../backend/metal/pipeline.ts";
import { ArgumentError, KernelCompileError } from "../core/errors.ts";
import { packageRoot } from "../core/paths.ts";
import { withFileErrors } from "../io/file_errors.ts";
// They define the enumerations that kernels include.
import "../ops/index.ts";
import "../optim/primitive.ts";
import "../quant/primitive.ts";

/** How files are compiled. */
export interface KernelOptions {
  /** Folders of files that are included. */
  readonly include?: readonly string[] | undefined;
  /** Macros: `NAME` or `NAME=value`. */
  readonly define?: readonly string[] | undefined;
  /** The language, as Apple's compiler has it: `metal3.1`. */
  readonly std?: string | undefined;
}

/**
 * Compiles a `.metal` file, on Linux in both passes with every kernel, and runs nothing. Returns the compiler's
 * diagnostics, or undefined where there are none. Texts for `#include "…"` come from the file's folder, the folders
 * that are given, and `kernels/`.
 */
export function checkKernel(path: string, options: KernelOptions = {}): string | undefined {
  const text = withFileErrors("metal check", path, () => readFileSync(path, "utf8"));
  const context = metalContext();
  if (context.isSoftware) context.configure("whole", true);
  const { include, define = [], std } = options;
  const source = {
    source: text,
    fileName: path,
    headers: includedTexts(path, include),
    macros: Object.fromEntries(define.map(macroOf)),
    languageVersion: std === undefined ? undefined : versionOf(std),
  };
  try {
    const library = createLibrary(context, "metal check", source);
    context.native.orchard_release(library);
    return undefined;
  } catch (error) {
    if (error instanceof KernelCompileError) return error.diagnostics;
    throw error;
  }
}

const macroOf = (text: string): [string, string] => {
  const [name, value] = text.split(/=(.*)/s, 2);
  return [name ?? text, value ?? "1"];
};

function versionOf(std: string): `${number}.${number}` {
  const found = /^(?:(?:macos|ios)-)?metal(\d+\.\d+)$/.exec(std)?.[1];
  if (found) return found as `${number}.${number}`;
  throw new ArgumentError("metal check", "invalidSetting", `expected --std to be such as metal3.1, got "${std}"`);
}

/**
 * Every text that a file includes with quotes, and that those include, by the name that is used; others are the
 * compiler's to find or to miss. Headers of enumerations, such as `generated/scan.h`, are made.
 */
export function includedTexts(path: string, folders: readonly string[] = []): Record<string, string> {
  const texts: Record<string, string> = {};
  const generated = new Map(enumerations().map(({ header: { name, text } }) => [name, text]));
  const collect = (file: string) => {
    for (const [, name] of readFileSync(file, "utf8").matchAll(/^\s*#\s*include\s*"([^"]+)"/gm)) {
      const found = [dirname(file), ...folders, join(packageRoot, "kernels")]
        .map((folder) => join(folder, name!))
        .find((candidate) => existsSync(candidate));
      if (generated.has(name!)) texts[name!] = generated.get(name!)!;
      if (!found || name! in texts) continue;
      texts[name!] = readFileSync(found, "utf8");
      collect(found);
    }
  };
  collect(path);
  return texts;
}
