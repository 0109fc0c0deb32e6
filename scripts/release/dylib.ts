/** Builds the cpu backend's dylib for the Linux packages. */
import { join } from "node:path";
import { librariesOf } from "../../src/backend/elf.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { buildCpuLibrary, buildPath } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import { glibcNeeded } from "./glibc.ts";
import { type LinuxTarget, oldestGlibc, zigCompiler } from "./zig.ts";

/** The folder of the release's dylibs and packages. */
export const releaseFolder: string = join(packageRoot, "build", "release");

const fileName = "libOrchardCPU.so";

/** Flags of the link. Zig includes its C++ library, which it always links statically. */
const libraryFlags = ["-shared", "-pthread", "-Wl,-z,defs", "-Wl,--gc-sections", "-s", "-ldl"];

/** Builds the dylib incrementally, and returns its path. @throws {Failure} if it needs a newer glibc than allowed */
export async function buildPortable(system: LinuxTarget, progress: (text: string) => void = () => {}): Promise<string> {
  const path = await buildCpuLibrary(progress, {
    compiler: await zigCompiler(system),
    objectFolder: buildPath("release", system),
    target: join(releaseFolder, "dylibs", `linux-${system}`, fileName),
    flags: ["-fno-sanitize=all"], // Zig enables this unless an optimization level is given, which the link lacks
    libraryFlags,
  });
  if (isMusl(system)) checkMusl(path);
  else await checkGlibc(path);
  return path;
}

const isMusl = (system: LinuxTarget): boolean => system.endsWith("-musl");

/** @throws {Failure} if the dylib needs a library other than musl's: small systems have no other */
export function checkMusl(path: string): void {
  const libraries = librariesOf(path);
  if (libraries.join() !== MUSL)
    throw new Failure(`${path} is linked against ${libraries.join(", ") || "no library"}, expected ${MUSL} alone.`);
}

/** The name of the library on every system with musl. */
const MUSL = "libc.so";

/** @throws {Failure} if the dylib needs a newer glibc than the packages promise */
export async function checkGlibc(path: string): Promise<void> {
  const needed = glibcNeeded(new Uint8Array(await Bun.file(path).arrayBuffer()));
  if (Bun.semver.order(`${needed}.0`, `${oldestGlibc}.0`) > 0)
    throw new Failure(`${path} needs glibc ${needed}, expected at most ${oldestGlibc}.`);
}
