import { existsSync, readFileSync } from "node:fs";
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
  const stamp = Bun.file(join(buildFolder, `${libraryName}.sources.json`));
  const source = await hashOf(built);
  // Files are compared by content, because a copied or restored folder has new times.
  if (await isCopy(target, source, stamp)) return target;
  const draft = `${target}.${process.pid}`;
  await copyFile(built, draft);
  await strip(draft);
  await rename(draft, target); // atomic: a process that has the old file open keeps it
  await stamp.write(JSON.stringify({ source, target: await hashOf(target) }));
  return target;
}

/** The Metal standard library's headers for the runtime on Linux, next to the dylib. */
export const headersFolder: string = join(buildFolder, "metal");

const runtimeFolder = join(swiftFolder, "Sources", "MetalRuntime");

/**
 * Copies the headers together with a hash of the runtime's sources. Compiled kernels depend on both, and clones and
 * programs with the same sources share them (compile/clang.cpp). Headers that are there already stay untouched, since
 * other processes may be compiling kernels with them.
 */
export async function copyHeaders(): Promise<void> {
  if (process.platform !== "linux") return;
  const key = runtimeKey();
  const wanted = new Map<string, Buffer>([...filesIn(join(runtimeFolder, "metal")), [SOURCES, Buffer.from(key)]]);
  const present = new Map(filesIn(headersFolder));
  if (wanted.size === present.size && [...wanted].every(([name, bytes]) => present.get(name)?.equals(bytes))) return;
  const draft = `${headersFolder}.${process.pid}`;
  await cp(join(runtimeFolder, "metal"), draft, { recursive: true });
  await Bun.write(join(draft, SOURCES), key);
  await rm(headersFolder, { recursive: true, force: true });
  await rename(draft, headersFolder);
}

/** The file with the hash of the runtime's sources. */
const SOURCES = join("mrt", "sources");

/** The files of a folder with their contents; none if there is no folder. */
const filesIn = (folder: string): [string, Buffer][] =>
  existsSync(folder)
    ? [...new Bun.Glob("**").scanSync(folder)].map((name) => [name, readFileSync(join(folder, name))])
    : [];

function runtimeKey(): string {
  const names = [...new Bun.Glob("**/*.{cpp,h}").scanSync(runtimeFolder)].filter((name) => !name.startsWith("metal/"));
  return contentKey(names.sort().flatMap((name) => [name, contentOf(join(runtimeFolder, name))!]));
}

/** Whether the target is a copy of the build with this hash, according to the stamp. */
async function isCopy(target: string, source: string, stamp: Bun.BunFile): Promise<boolean> {
  if (!(await Bun.file(target).exists()) || !(await stamp.exists())) return false;
  const made = (await stamp.json()) as { readonly source?: string; readonly target?: string };
  return made.source === source && made.target === (await hashOf(target));
}

/** Not a cryptographic hash: 60 MB take 20 ms. */
const hashOf = async (path: string): Promise<string> => Bun.hash(await Bun.file(path).bytes()).toString(16);

/**
 * On Linux the linker has already removed unneeded symbols. Apple's keeps local symbols, and a changed file must be
 * signed again.
 */
async function strip(path: string): Promise<void> {
  if (process.platform !== "darwin") return;
  await runOrFail("Stripping the dylib", ["strip", "-x", path]);
  await runOrFail("Signing the dylib", ["codesign", "--force", "--sign", "-", path]);
}
