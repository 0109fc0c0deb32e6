/** Builds `libOrchardCPU`, the cpu backend's dylib, from C++ and nothing else. */
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { buildFolder, cpuLibraryName, packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";
import { inParallel } from "../parallel.ts";
import { withSpinner } from "../progress.ts";
import { run } from "../run.ts";
import { withLock } from "../toolchain/lock.ts";
import { type CppCompiler, findCompiler } from "./compiler.ts";
import { isOutOfDate, type ObjectFile, objectFiles, objectName } from "./objects.ts";

const sourceFolder = join(packageRoot, "native", "cpu");

/** A path in the folder of what builds leave. */
export const buildPath = (...names: readonly string[]): string => join(packageRoot, "native", ".build", ...names);

/** A way to build the dylib. */
export interface CpuBuild {
  readonly compiler: CppCompiler;
  readonly objectFolder: string;
  readonly target: string;
  /** Added to those of each object file, and to those of the link. */
  readonly flags: readonly string[];
  readonly libraryFlags: readonly string[];
}

/** Builds the dylib and says where it is. */
export async function buildCpu(): Promise<void> {
  const path = await withSpinner("Building the cpu backend", buildCpuLibrary);
  console.log(`${relative(packageRoot, path)}: ${(Bun.file(path).size / 1e6).toFixed(1)} MB`);
}

/** Compiles what is out of date and links where anything was. Returns the dylib's path. */
export async function buildCpuLibrary(progress: (text: string) => void = () => {}, given?: CpuBuild): Promise<string> {
  const build = given ?? (await usualBuild());
  await mkdir(build.objectFolder, { recursive: true });
  const onWait = () => progress("Waiting for another build of the cpu backend");
  return withLock(join(build.objectFolder, ".lock"), onWait, () => buildLocked(build, progress));
}

const usualBuild = async (): Promise<CpuBuild> => ({
  compiler: await findCompiler(),
  objectFolder: buildPath("cpu"),
  target: join(buildFolder, cpuLibraryName),
  flags: [],
  libraryFlags,
});

async function buildLocked(build: CpuBuild, progress: (text: string) => void): Promise<string> {
  const { compiler, objectFolder, target } = build;
  const objects = objectFiles(sourceFolder, objectFolder, compiler, build.flags);
  await removeOthers(objectFolder, objects);
  const stale = objects.filter((object) => isOutOfDate(object, stamp(compiler, object)));
  let done = 0;
  await inParallel(stale, async (object) => {
    progress(`Compiling C++: ${++done} of ${stale.length}, ${objectName(object)}`);
    await compile(compiler, object);
  });
  if (stale.length > 0 || !(await isNewerThanAll(target, objects))) await link(build, objects);
  return target;
}

/** Objects of sources that are gone. */
async function removeOthers(objectFolder: string, objects: readonly ObjectFile[]): Promise<void> {
  const wanted = new Set(objects.map(objectName));
  for (const name of await readdir(objectFolder))
    if (name !== ".lock" && !wanted.has(name.replace(/\.o(\.d|\.command)?$/, ""))) await rm(join(objectFolder, name));
}

const compileCommand = ({ command }: CppCompiler, { source, path, flags }: ObjectFile): string[] => [
  ...command,
  ...flags,
  ...["-MMD", "-MF", `${path}.d`, "-c", source, "-o", path],
];

/** What is kept beside an object, so that another compiler or other flags make it anew. */
const stamp = (compiler: CppCompiler, object: ObjectFile): string =>
  `${[compiler.version, ...compileCommand(compiler, object)].join("\n")}\n`;

async function compile(compiler: CppCompiler, object: ObjectFile): Promise<void> {
  const command = compileCommand(compiler, object);
  await rm(`${object.path}.command`, { force: true });
  const { status, output } = await run(command);
  if (status !== 0)
    throw new Failure(
      `${relative(packageRoot, object.source)} (${objectName(object)}) does not compile:\n${output.trim()}`,
    );
  await Bun.write(`${object.path}.command`, stamp(compiler, object));
}

/** The dylib needs the machine's C library and nothing else, so that a packed one loads on other machines. */
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

async function link(
  { compiler: { command, linkFlags }, flags, libraryFlags: ofLibrary, target }: CpuBuild,
  objects: readonly ObjectFile[],
): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const draft = `${target}.${process.pid}`;
  const { status, output } = await run([
    ...command,
    ...objects.map(({ path }) => path),
    ...linkFlags,
    ...flags,
    ...ofLibrary,
    "-o",
    draft,
  ]);
  if (status !== 0) throw new Failure(`${cpuLibraryName} can't be linked:\n${output.trim()}`);
  await rename(draft, target); // at once: a process that has the old one open keeps it
}

async function isNewerThanAll(target: string, objects: readonly ObjectFile[]): Promise<boolean> {
  const file = Bun.file(target);
  if (!(await file.exists())) return false;
  return objects.every(({ path }) => Bun.file(path).lastModified <= file.lastModified);
}
