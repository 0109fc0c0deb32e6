/** Checks whether a mutant compiles, with the check of its language on the files that contain it. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cpuLibraryName, platform } from "../../src/core/paths.ts";
import type { Copy } from "./copy.ts";
import type { LanguageName } from "./sites.ts";

/** Checks a mutant in place; returns why it does not count, or undefined if it compiles. */
type Check = (copy: Copy, file: string) => Promise<string | undefined>;

const CHECK_SECONDS = 120;
const BUILD_SECONDS = 540;

export const compileChecks: Readonly<Record<LanguageName, Check>> = {
  TypeScript: checkTypes,
  "C++": buildDylib,
  kernels: checkKernels,
};

/**
 * Checks the types of the mutant's file and its imports. Declarations that only the mutation leaves unused are no type
 * errors, so tests run such a mutant.
 */
async function checkTypes(copy: Copy, file: string): Promise<string | undefined> {
  const project = "tsconfig.mutant.json";
  const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false };
  const include = ["src/**/*.d.ts", file];
  writeFileSync(
    join(copy.root, project),
    JSON.stringify({ extends: "./tsconfig.json", compilerOptions, include, exclude: ["src/**/page"] }),
  );
  const tsc = [process.execPath, join("node_modules", ".bin", "tsc"), "--project", project];
  const { status, output } = await copy.run(tsc, CHECK_SECONDS);
  return status === 0 ? undefined : firstError(output);
}

/** Builds the dylib for this processor's instruction set. */
async function buildDylib(copy: Copy): Promise<string | undefined> {
  const { status, output, isOver } = await copy.run([process.execPath, "scripts/mutate/dylib.ts"], BUILD_SECONDS);
  if (isOver) return `the build takes over ${BUILD_SECONDS} s`;
  return status === 0 ? undefined : firstError(output.replaceAll(`${copy.root}/`, ""));
}

/** The files that a build of the dylib changes. */
export const dylibPaths: readonly string[] = [join("build", platform, cpuLibraryName), join("native", ".build", "cpu")];

/** Compiles the kernel, or those that include the header, with the strict typing pass. */
async function checkKernels(copy: Copy, file: string): Promise<string | undefined> {
  const kernels = file.endsWith(".metal") ? [file] : kernelsWith(copy, file);
  const command = [process.execPath, "src/cli/orchard.ts", "metal", "check", ...kernels];
  const { status, output } = await copy.run(command, CHECK_SECONDS);
  return status === 0 ? undefined : firstError(output);
}

/** Returns some of the kernels that include a header, directly or through another. */
function kernelsWith({ root }: Copy, header: string, count = 3): string[] {
  const files = [...new Bun.Glob("kernels/**/*.{metal,h}").scanSync({ cwd: root })].sort();
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const holders = new Set([header]);
  for (const holder of holders) {
    const include = `"${holder.slice("kernels/".length)}"`;
    for (const [file, text] of texts) if (text.includes(include)) holders.add(file);
  }
  return [...holders].filter((file) => file.endsWith(".metal")).slice(0, count);
}

const firstError = (output: string): string =>
  /^.*\berror\b.*$/im.exec(output)?.[0].trim() ?? output.trim().split("\n").at(-1) ?? "";
