import { copyFile, cp, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { swiftFolder } from "../../src/cli/swift_module.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { buildFolder, libraryName } from "../../src/core/paths.ts";
import { contentKey, contentOf } from "../content_cache.ts";
import { buildDylib } from "./package.ts";

/** Builds the dylib, and copies it without debug information to where the loader looks. Returns its path. */
export async function buildLibrary(swift: SwiftToolchain): Promise<string> {
  const built = await buildDylib(swift);
  const target = join(buildFolder, libraryName);
  await mkdir(buildFolder, { recursive: true });
  await copyHeaders();
  if (await isNewer(target, built)) return target;
  const draft = `${target}.${process.pid}`;
  await copyFile(built, draft);
  await strip(draft);
  await rename(draft, target); // atomic: a process that has the old file open keeps it
  return target;
}

/** The Metal standard library's headers for the runtime on Linux, next to the dylib. */
export const headersFolder: string = join(buildFolder, "metal");

const runtimeFolder = join(swiftFolder, "Sources", "MetalRuntime");

/**
 * With a hash of the runtime's sources, since compiled kernels depend on them: clones and programs with the same
 * sources share compiled kernels (compile/clang.cpp).
 */
async function copyHeaders(): Promise<void> {
  if (process.platform !== "linux") return;
  const draft = `${headersFolder}.${process.pid}`;
  await cp(join(runtimeFolder, "metal"), draft, { recursive: true });
  await Bun.write(join(draft, "mrt", "sources"), runtimeKey());
  await rm(headersFolder, { recursive: true, force: true });
  await rename(draft, headersFolder);
}

function runtimeKey(): string {
  const names = [...new Bun.Glob("**/*.{cpp,h}").scanSync(runtimeFolder)].filter((name) => !name.startsWith("metal/"));
  return contentKey(names.sort().flatMap((name) => [name, contentOf(join(runtimeFolder, name))!]));
}

async function isNewer(target: string, built: string): Promise<boolean> {
  const file = Bun.file(target);
  return (await file.exists()) && file.lastModified >= Bun.file(built).lastModified;
}

/**
 * On Linux the linker has already removed unneeded symbols. Apple's keeps local symbols, and a changed file must be
 * signed again.
 */
async function strip(path: string): Promise<void> {
  if (process.platform !== "darwin") return;
  await runOrFail("Stripping the dylib", ["strip", "-x", path]);
  await runOrFail("Signing the dylib", ["codesign", "--force", "--sign", "-", path]);
}
