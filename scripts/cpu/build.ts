/** Builds `libOrchardCPU`, the cpu backend's dylib, from C++ only. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { run } from "../../src/cli/run.ts";
import { withLock } from "../../src/cli/toolchain/lock.ts";
import { buildFolder, cpuLibraryName, packageRoot } from "../../src/core/paths.ts";
import { ContentCache, contentKey } from "../content_cache.ts";
import { Failure } from "../failure.ts";
import { inParallel } from "../parallel.ts";
import { withSpinner } from "../progress.ts";
import { type CppCompiler, findCompiler } from "./compiler.ts";
import { writeGenerated } from "./generated.ts";
import {
  flagsOf,
  isOutOfDate,
  isPerSet,
  keyFile,
  lessOptimized,
  type ObjectFile,
  objectFiles,
  objectKey,
  objectName,
  setsOf,
} from "./objects.ts";
import { type Precompiled, precompile } from "./precompile.ts";
import { setsOfMachine, setsSource } from "./sets.ts";
import { slowestFirst } from "./slow.ts";

const sourceFolder = join(packageRoot, "native", "cpu");

/** Returns a path in the build folder. */
export const buildPath = (...names: readonly string[]): string => join(packageRoot, "native", ".build", ...names);

/** Options of a build of the dylib. */
export interface CpuBuild {
  readonly compiler: CppCompiler;
  readonly objectFolder: string;
  readonly target: string;
  /** Flags added for each object file and for the link. */
  readonly flags: readonly string[];
  readonly libraryFlags: readonly string[];
  /**
   * A quick build: it has these instruction sets, and others only if they were compiled before. Files are optimized
   * less, which changes no result, and are recompiled by the next full build. It omits {@link laterFamilies} unless one
   * was compiled before: calls of them fall back, with a message that names the command that builds them.
   */
  readonly sets?: readonly string[];
  /**
   * Sets for which objects that are out of date are optimized least: see {@link leastOptimized}. The next full build
   * compiles them again.
   */
  readonly unusedSets?: readonly string[];
  /**
   * Whether the build neither uses nor stores objects of other clones, because it compiles modified sources. A quick
   * build then optimizes them even less: -O1 takes half of the time of -O2.
   */
  readonly isApart?: boolean;
}

/**
 * Families that training and generation never call and no other family uses. They take three tenths of the time of a
 * first build.
 */
export const laterFamilies: readonly string[] = ["linalg", "quant"];

/**
 * Which objects a build has. `all`: every instruction set. `machine`: this processor's best one alone, unless others
 * are already compiled. `tests`: every set, but only the best one is fully optimized, since tests compute with it.
 */
export type BuildKind = "all" | "machine" | "tests";

/** Builds the dylib and prints its path. */
export async function buildCpu(which: BuildKind = "all"): Promise<void> {
  const path = await withSpinner("Building the cpu backend", async (progress) =>
    buildCpuLibrary(progress, await usualBuild(which)),
  );
  console.log(`${relative(packageRoot, path)}: ${(Bun.file(path).size / 1e6).toFixed(1)} MB`);
}

/** Compiles what is out of date, and links if anything changed. Returns the dylib's path. */
export async function buildCpuLibrary(progress: (text: string) => void = () => {}, given?: CpuBuild): Promise<string> {
  const build = given ?? (await usualBuild());
  writeGenerated();
  await mkdir(build.objectFolder, { recursive: true });
  const onWait = () => progress("Waiting for another build of the cpu backend");
  return withLock(join(build.objectFolder, ".lock"), onWait, () => buildLocked(build, progress));
}

export async function usualBuild(which: BuildKind = "all"): Promise<CpuBuild> {
  const compiler = await findCompiler();
  const all = setsOf(compiler);
  const sets = setsOfMachine(all);
  const unusedSets = all.map(({ name }) => name).filter((name) => !sets.includes(name));
  const target = join(buildFolder, cpuLibraryName);
  const build = { compiler, objectFolder: buildPath("cpu"), target, flags: [], libraryFlags };
  return { ...build, ...(which === "machine" ? { sets } : which === "tests" ? { unusedSets } : {}) };
}

async function buildLocked(build: CpuBuild, progress: (text: string) => void): Promise<string> {
  const { compiler, objectFolder, target, isApart = false } = build;
  const all = objectFiles(sourceFolder, objectFolder, compiler, build.flags);
  await removeOthers(objectFolder, all);
  const isStale = (object: ObjectFile) => !isCurrent(compiler, object, isApart);
  const whole = await objectsOf(build, chosenSets(build));
  const objects = build.sets
    ? forNow(compiler, whole, isStale, isApart)
    : leastOptimized(whole, isStale, build.unusedSets);
  const stale = objects.filter(isStale);
  await compileAll(build, stale, progress);
  const command = linkCommand(build, objects);
  const key = contentKey([...command, ...objects.map((object) => objectKey(compiler, object))]);
  if (!(await isLinked(target, key, objectFolder))) await link(build, command, key);
  return target;
}

/** The objects of all clones on the machine. A full build of the three instruction sets takes 40 MB. */
const cache = new ContentCache("objects", 600e6);

/** Whether an object is up to date, or was restored from the cache. */
function isCurrent(compiler: CppCompiler, object: ObjectFile, isApart: boolean): boolean {
  const key = objectKey(compiler, object);
  if (!isOutOfDate(object, key)) return true;
  if (isApart || !cache.has(key)) return false;
  rmSync(keyFile(object.path), { force: true });
  if (!cache.restore(key, object.path)) return false;
  writeFileSync(keyFile(object.path), key);
  return true;
}

/** Selects the objects of a quick build, and how to compile those that are out of date. */
export function forNow(
  compiler: Pick<CppCompiler, "isClang">,
  objects: readonly ObjectFile[],
  isStale: (object: ObjectFile) => boolean,
  isApart = false,
): ObjectFile[] {
  const isLater = (object: ObjectFile) => laterFamilies.includes(objectName(object).split(".")[0]);
  const wasBuilt = objects.some((object) => isLater(object) && existsSync(object.path));
  return objects
    .filter((object) => wasBuilt || !isLater(object))
    .map((object) => (isStale(object) ? quick(compiler, object, isApart) : object));
}

/**
 * Most loops are in the files of instruction sets; the others are optimized even less. Values are the same, since no
 * flag here allows a compiler to change one. Warnings are left to full builds: at -O2 GCC 12 warns about values that
 * its intrinsics leave undefined (GCC bug 105593).
 */
const quick = (compiler: Pick<CppCompiler, "isClang">, object: ObjectFile, isApart: boolean): ObjectFile => ({
  ...object,
  flags: [...object.flags, ...(isPerSet(object.source) && !isApart ? lessOptimized(compiler) : ["-O1"]), "-w"],
});

/**
 * Returns the objects, with `-O1` for those of unused sets that are out of date: they have the same values, and compile
 * in half of the time. Tests need them only to link and to choose a set. Warnings are left to full builds, as in
 * {@link forNow}: the objects of the used sets report those of the same sources.
 */
export function leastOptimized(
  objects: readonly ObjectFile[],
  isStale: (object: ObjectFile) => boolean,
  unusedSets: readonly string[] = [],
): ObjectFile[] {
  const isUnused = (object: ObjectFile) =>
    isPerSet(object.source) && unusedSets.some((set) => object.path.endsWith(`.${set}.o`));
  return objects.map((object) =>
    isUnused(object) && isStale(object) ? { ...object, flags: [...object.flags, "-O1", "-w"] } : object,
  );
}

/**
 * The sets that the build names and, unless it is separate, those that were compiled before and are still up to date.
 */
function chosenSets({ compiler, objectFolder, flags, sets, isApart = false }: CpuBuild): string[] {
  const names = setsOf(compiler).map(({ name }) => name);
  const isBuilt = (name: string) =>
    objectFiles(sourceFolder, objectFolder, compiler, flags, [name])
      .filter(({ source }) => isPerSet(source))
      .every((object) => isCurrent(compiler, object, isApart));
  return names.filter((name) => sets === undefined || sets.includes(name) || (!isApart && isBuilt(name)));
}

/** The objects of the chosen sets, and the object that lists the sets. */
async function objectsOf({ compiler, objectFolder, flags }: CpuBuild, sets: readonly string[]): Promise<ObjectFile[]> {
  const all = setsOf(compiler);
  const source = join(objectFolder, "sets.cpp");
  const text = setsSource(sourceFolder, all, sets);
  if (!existsSync(source) || (await Bun.file(source).text()) !== text) await Bun.write(source, text);
  const chosen = { source, path: join(objectFolder, "sets.o"), flags: flagsOf(compiler, all[0], flags) };
  return [...objectFiles(sourceFolder, objectFolder, compiler, flags, sets), chosen];
}

/** Compiles the slow files first, so that no processor waits for one at the end. */
async function compileAll(
  { compiler, objectFolder, isApart = false }: CpuBuild,
  stale: readonly ObjectFile[],
  progress: (text: string) => void,
): Promise<void> {
  const headers = await precompile(compiler, objectFolder, stale, progress);
  try {
    let done = 0;
    await inParallel(slowestFirst(stale), async (object) => {
      progress(`Compiling C++: ${++done} of ${stale.length}, ${objectName(object)}`);
      await compile(compiler, object, headers, isApart);
    });
  } finally {
    await headers?.remove();
    if (stale.length > 0) cache.trim();
  }
}

/** Removes objects of deleted sources. */
async function removeOthers(objectFolder: string, objects: readonly ObjectFile[]): Promise<void> {
  const wanted = new Set(objects.map(objectName));
  const isKept = (name: string) => name === ".lock" || name === linkStamp || name.startsWith("sets.");
  for (const name of await readdir(objectFolder))
    if (!isKept(name) && !wanted.has(name.replace(/\.o(\.key)?$/, "")))
      await rm(join(objectFolder, name), { recursive: true });
}

/**
 * Compiles a source. The key is computed from the files before compilation. If someone edits them meanwhile, the object
 * is stale, and no clone gets it.
 *
 * @param headers the flags that use precompiled headers, which don't change the object
 */
export async function compile(
  compiler: Pick<CppCompiler, "command" | "version">,
  object: ObjectFile,
  headers: Precompiled | undefined,
  isApart: boolean,
): Promise<void> {
  const { source, path, flags } = object;
  const further = headers?.flagsFor(object) ?? [];
  const key = objectKey(compiler, object);
  await rm(keyFile(path), { force: true }); // the object is incomplete meanwhile
  const { status, output } = await run([...compiler.command, ...flags, ...further, "-c", source, "-o", path]);
  if (status !== 0)
    throw new Failure(`${relative(packageRoot, source)} (${objectName(object)}) does not compile:\n${output.trim()}`);
  await Bun.write(keyFile(path), key);
  if (!isApart && key === objectKey(compiler, object)) cache.store(key, path);
}

/** The dylib requires only the machine's C library, so that a packed one loads on other machines. */
const libraryFlags =
  process.platform === "darwin"
    ? ["-dynamiclib", "-install_name", `@rpath/${cpuLibraryName}`, "-framework", "Accelerate", "-Wl,-dead_strip"]
    : [
        "-shared",
        "-pthread",
        "-static-libstdc++",
        "-static-libgcc",
        "-Wl,-z,defs",
        "-Wl,--exclude-libs,ALL,--gc-sections",
        "-s",
        "-ldl",
      ];

/** The inputs of the link, in the folder of objects: the dylib is relinked if objects or flags differ. */
const linkStamp = "link.key";

const linkCommand = (
  { compiler: { command, linkFlags }, flags, libraryFlags: ofLibrary, target }: CpuBuild,
  objects: readonly ObjectFile[],
): string[] => [...command, ...objects.map(({ path }) => path), ...linkFlags, ...flags, ...ofLibrary, "-o", target];

async function link({ target, objectFolder }: CpuBuild, command: readonly string[], key: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const draft = `${target}.${process.pid}`;
  const { status, output } = await run([...command.slice(0, -1), draft]);
  if (status !== 0) throw new Failure(`${cpuLibraryName} can't be linked:\n${output.trim()}`);
  await rename(draft, target); // atomic: a process that has the old file open keeps it
  await Bun.write(join(objectFolder, linkStamp), key);
}

async function isLinked(target: string, key: string, objectFolder: string): Promise<boolean> {
  const [file, stamp] = [Bun.file(target), Bun.file(join(objectFolder, linkStamp))];
  return (await file.exists()) && (await stamp.exists()) && (await stamp.text()) === key;
}
