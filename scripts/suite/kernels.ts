/** Compiles every kernel of the package as a separate library, including the strict typing pass. */
import { realpathSync } from "node:fs";
import { join, relative } from "node:path";
import { kernelVersions } from "../../src/backend/metal/kernel_files.ts";
import { checkKernel, includedTexts } from "../../src/cli/kernels.ts";
import { BackendError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { type Counts, noTests, oneFailed, onePassed, sum } from "../counts.ts";
import { changedFiles } from "./changed.ts";
import { suiteCacheLimit } from "./report.ts";

/** The language versions that kernels must compile with: the library's, and every newer one. */
export const languages = ["metal3.1", "metal3.2", "metal4.0", "metal4.1"] as const;

type Language = (typeof languages)[number];

/**
 * Checks every kernel with the library's language version, and with all of `languages` if `isFull` or if the kernel, or
 * a file that it includes, differs from the last commit. The compiler's cache makes a repeat free.
 */
export async function checkKernels({ isFull = false } = {}): Promise<Counts> {
  process.env["ORCHARD_METAL_CACHE_LIMIT"] ??= String(suiteCacheLimit); // a lower limit would evict the tests' kernels
  const found = [...new Bun.Glob("kernels/**/*.metal").scanSync({ cwd: packageRoot, absolute: true })].sort();
  const files = found.map((file) => relative(process.cwd(), file)); // relative: clones share the compiler's cache
  // Without git any file may have changed.
  const changed = await changedFiles().catch(() => undefined);
  const paths = changed?.map((file) => join(packageRoot, file));
  const counts = files.map((file) =>
    sum(languagesFor(file, isFull ? undefined : paths).map((std) => check(file, std))),
  );
  const total = sum(counts);
  for (const failure of total.failures) console.log(failure);
  return total;
}

/** @param changed paths of changed files; undefined: all */
export function languagesFor(kernel: string, changed: readonly string[] | undefined): readonly Language[] {
  const texts = new Set([realpathSync(kernel), ...includedTexts(kernel).files]);
  const required = kernelVersions[relative(join(packageRoot, "kernels"), realpathSync(kernel))];
  const known = required === undefined ? languages : languages.slice(languages.indexOf(`metal${required}` as Language));
  return changed === undefined || changed.some((file) => texts.has(file)) ? known : known.slice(0, 1);
}

/** A kernel in one language version. A Mac skips versions that its compiler does not know. */
export function check(kernel: string, std: Language): Counts {
  try {
    const problem = checkKernel(kernel, { std });
    return problem === undefined ? onePassed : oneFailed(`${kernel}, ${std}: ${problem}`);
  } catch (error) {
    if (!(error instanceof BackendError && error.code === "unsupported")) throw error;
    console.log(`${kernel} is not checked: ${error.message}`);
    return { ...noTests, skipped: 1 };
  }
}
