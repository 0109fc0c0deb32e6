import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { metalContext } from "../backend/metal/context.ts";
import { createLibrary } from "../backend/metal/pipeline.ts";
import { KernelCompileError } from "../errors.ts";
import { packageRoot } from "./paths.ts";

/**
 * Compiles a `.metal` file, on Linux with the strict typing pass, and runs nothing. Returns the compiler's diagnostics,
 * or undefined where there are none. Texts for `#include "…"` come from the file's folder and from `kernels/`.
 */
export function checkKernel(path: string): string | undefined {
  const context = metalContext();
  const source = { source: readFileSync(path, "utf8"), fileName: path, headers: includedTexts(path) };
  try {
    const library = createLibrary(context, "metal check", source);
    context.native.orchard_release(library);
    return undefined;
  } catch (error) {
    if (error instanceof KernelCompileError) return error.diagnostics;
    throw error;
  }
}

/** Every header that a file may include, by the name that it would include it with. */
export function includedTexts(path: string): Record<string, string> {
  const folders = [join(packageRoot, "kernels"), dirname(path)].filter((folder) => existsSync(folder));
  const headers = folders.flatMap((folder) =>
    [...new Bun.Glob("**/*.{h,metal}").scanSync({ cwd: folder })].map((name) => [name, join(folder, name)] as const),
  );
  return Object.fromEntries(headers.map(([name, file]) => [name, readFileSync(file, "utf8")]));
}
