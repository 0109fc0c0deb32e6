import { copyFile, mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { buildFolder, libraryName } from "../../src/debug/paths.ts";
import type { SwiftToolchain } from "../../src/debug/toolchain.ts";
import { runOrFail } from "../run.ts";
import { buildRelease, productsFolder } from "./package.ts";

/** Builds the dylib and puts it, without debug information, where the loader looks. Returns its path. */
export async function buildLibrary(swift: SwiftToolchain): Promise<string> {
  await buildRelease(swift, "--product", "OrchardMetal");
  const built = join(productsFolder("release"), libraryName);
  const target = join(buildFolder, libraryName);
  if (await isNewer(target, built)) return target;
  await mkdir(buildFolder, { recursive: true });
  const draft = `${target}.${process.pid}`;
  await copyFile(built, draft);
  await strip(draft);
  await rename(draft, target); // at once: a process that has the old one open keeps it
  return target;
}

async function isNewer(target: string, built: string): Promise<boolean> {
  const file = Bun.file(target);
  return (await file.exists()) && file.lastModified >= Bun.file(built).lastModified;
}

/** On Linux the linker has left out what is not needed; Apple's keeps local symbols. */
async function strip(path: string): Promise<void> {
  if (process.platform === "darwin") await runOrFail("Stripping the dylib", ["strip", "-x", path]);
}
