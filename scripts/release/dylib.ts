/** Builds the cpu backend's dylib for the Linux packages. */
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { buildCpuLibrary, buildPath } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import { glibcNeeded } from "./glibc.ts";
import { type LinuxArchitecture, oldestGlibc, zigCompiler } from "./zig.ts";

/** The folder of the release's dylibs and packages. */
export const releaseFolder: string = join(packageRoot, "build", "release");

const fileName = "libOrchardCPU.so";

/** Flags of the link. Zig brings its C++ library, which it always links statically. */
const libraryFlags = ["-shared", "-pthread", "-Wl,-z,defs", "-Wl,--gc-sections", "-s", "-ldl"];

/** Builds the dylib incrementally, and returns its path. @throws {Failure} if it needs a newer glibc than allowed */
export async function buildPortable(
  architecture: LinuxArchitecture,
  progress: (text: string) => void = () => {},
): Promise<string> {
  const path = await buildCpuLibrary(progress, {
    compiler: await zigCompiler(architecture),
    objectFolder: buildPath("release", architecture),
    target: join(releaseFolder, "dylibs", `linux-${architecture}`, fileName),
    flags: ["-fno-sanitize=all"], // Zig enables this unless an optimization level is given, which the link lacks
    libraryFlags,
  });
  await checkGlibc(path);
  return path;
}

/** @throws {Failure} if the dylib needs a newer glibc than the packages promise */
export async function checkGlibc(path: string): Promise<void> {
  const needed = glibcNeeded(new Uint8Array(await Bun.file(path).arrayBuffer()));
  if (Bun.semver.order(`${needed}.0`, `${oldestGlibc}.0`) > 0)
    throw new Failure(`${path} needs glibc ${needed}, expected at most ${oldestGlibc}.`);
}
