import { copyFile, cp, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { buildFolder, libraryName } from "../../src/core/paths.ts";
import { buildRelease, productsFolder, swiftFolder } from "./package.ts";

/** Builds the dylib and puts it, without debug information, where the loader looks. Returns its path. */
export async function buildLibrary(swift: SwiftToolchain): Promise<string> {
  await buildRelease(swift, "--product", "OrchardMetal");
  const built = join(productsFolder("release"), libraryName);
  const target = join(buildFolder, libraryName);
  await mkdir(buildFolder, { recursive: true });
  await copyHeaders();
  if (await isNewer(target, built)) return target;
  const draft = `${target}.${process.pid}`;
  await copyFile(built, draft);
  await strip(draft);
  await rename(draft, target); // at once: a process that has the old one open keeps it
  return target;
}

/** On Linux the runtime finds the Metal standard library's headers beside the dylib.  */
async function copyHeaders(): Promise<void> {
  if (process.platform !== "linux") return;
  const target = join(buildFolder, "metal");
  const draft = `${target}.${process.pid}`;
  await cp(join(swiftFolder, "Sources", "MetalRuntime", "metal"), draft, { recursive: true });
  await rm(target, { recursive: true, force: true });
  await rename(draft, target);
}

async function isNewer(target: string, built: string): Promise<boolean> {
  const file = Bun.file(target);
  return (await file.exists()) && file.lastModified >= Bun.file(built).lastModified;
}

/**
 * On Linux the linker has left out what is not needed; Apple's keeps local symbols, and what is changed must be signed
 * anew.
 */
async function strip(path: string): Promise<void> {
  if (process.platform !== "darwin") return;
  await runOrFail("Stripping the dylib", ["strip", "-x", path]);
  await runOrFail("Signing the dylib", ["codesign", "--force", "--sign", "-", path]);
}
