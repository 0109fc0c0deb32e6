/** Runs `clang-format` on C++ and MSL, with npm's WebAssembly build, so that every machine has the same version. */
import { join } from "node:path";
import { run } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { filesOf } from "./files.ts";

const program = join(packageRoot, "node_modules", ".bin", "clang-format");

/** The headers of Metal's standard library have no extension. */
export const clangFiles = (): string[] =>
  filesOf([
    "native/**/*.{h,cpp}",
    "kernels/**/*.{h,metal}",
    "swift/{Sources,Tests}/**/*.{h,c,cpp}",
    "swift/Sources/MetalRuntime/metal/metal_*",
  ]);

/**
 * Returns the lines that `clang-format` would change, as `file:line`. The nearest `.clang-format` above a file applies.
 */
export async function clangProblems(files: readonly string[], folder: string = packageRoot): Promise<string[]> {
  const results = [];
  for (const some of portions(files))
    results.push(await run([process.execPath, program, "--dry-run", "-Werror", ...some], { cwd: folder }));
  const output = results.map((result) => result.output).join("\n");
  const status = results.find((result) => result.status !== 0)?.status ?? 0;
  const lines = [...Bun.stripANSI(output).matchAll(/^(.+:\d+):\d+: error: code should be clang-formatted/gm)];
  const problems = [...new Set(lines.map(([, line]) => line))];
  return status !== 0 && problems.length === 0 ? [`clang-format: ${output.trim()}`] : problems;
}

/** Formats in place. A second pass may align lines that the first one wrapped. */
export async function clangFormat(files: readonly string[], folder: string = packageRoot): Promise<void> {
  for (const some of portions(files))
    for (let pass = 0; pass < 2; pass++) await run([process.execPath, program, "-i", ...some], { cwd: folder });
}

/** WebAssembly's stack holds the arguments: hundreds of paths overflow it. */
const MOST_FILES = 200;

const portions = (files: readonly string[]): (readonly string[])[] =>
  Array.from({ length: Math.ceil(files.length / MOST_FILES) }, (_, at) =>
    files.slice(at * MOST_FILES, (at + 1) * MOST_FILES),
  );
