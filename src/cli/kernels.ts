import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { enumerations } from "../backend/enumeration.ts";
import { metalContext } from "../backend/metal/context.ts";
import { createLibrary } from "../backend/metal/pipeline.ts";
import { KernelCompileError } from "../core/errors.ts";
import { packageRoot } from "../core/paths.ts";
import { withFileErrors } from "../io/file_errors.ts";
import { reportErrors } from "../train/errors.ts";
// They define the enumerations that kernels include.
import "../ops/index.ts";
import "../optim/primitive.ts";
import "../quant/primitive.ts";

/** `orchard metal check`: prints what is wrong with each file. Returns the exit code. */
export function checkKernels(files: readonly string[]): Promise<number> {
  return reportErrors(async () => {
    const problems = files.map((file) => {
      const problem = checkKernel(file);
      console.log(problem ?? `${file}: no problems`);
      return problem;
    });
    return problems.some(Boolean) ? 1 : 0;
  });
}

/**
 * Compiles a `.metal` file, on Linux with the strict typing pass, and runs nothing. Returns the compiler's diagnostics,
 * or undefined where there are none. Texts for `#include "…"` come from the file's folder and from `kernels/`.
 */
export function checkKernel(path: string): string | undefined {
  const text = withFileErrors("metal check", path, () => readFileSync(path, "utf8"));
  const context = metalContext();
  const source = { source: text, fileName: path, headers: includedTexts(path) };
  try {
    const library = createLibrary(context, "metal check", source);
    context.native.orchard_release(library);
    return undefined;
  } catch (error) {
    if (error instanceof KernelCompileError) return error.diagnostics;
    throw error;
  }
}

/**
 * Every text that a file includes with quotes, and that those include, by the name that is used; others are the
 * compiler's to find or to miss. Headers of enumerations, such as `generated/scan.h`, are made.
 */
export function includedTexts(path: string): Record<string, string> {
  const texts: Record<string, string> = {};
  const generated = new Map(enumerations().map(({ header: { name, text } }) => [name, text]));
  const collect = (file: string) => {
    for (const [, name] of readFileSync(file, "utf8").matchAll(/^\s*#\s*include\s*"([^"]+)"/gm)) {
      const found = [join(dirname(file), name!), join(packageRoot, "kernels", name!)].find((candidate) =>
        existsSync(candidate),
      );
      if (generated.has(name!)) texts[name!] = generated.get(name!)!;
      if (!found || name! in texts) continue;
      texts[name!] = readFileSync(found, "utf8");
      collect(found);
    }
  };
  collect(path);
  return texts;
}
