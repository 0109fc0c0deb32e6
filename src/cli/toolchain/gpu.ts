/**
 * Unpacks clang with LLVM's target for NVIDIA GPUs from Debian's packages into the user's cache, without root. It
 * compiles kernels for GPUs; Swift's clang has no such target. apt verifies the packages' checksums and signatures.
 */
import { existsSync } from "node:fs";
import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../../core/paths.ts";
import { Failure } from "../failure.ts";
import { run } from "../run.ts";
import { Apt } from "./apt.ts";
import type { Machine, Progress } from "./install.ts";
import { withLock } from "./lock.ts";

/** The folder's name in the cache: the compiler's version, and the revision of this recipe. */
const compilerName = "clang-19-1";

/** The folder of compilers for GPUs. */
export const gpuFolder = (): string => join(cacheFolder(), "gpu");

/** The compiler, libclc's functions, and the shared libraries that a minimal system lacks. */
export const gpuPackages = (codename: string): readonly string[] => [
  "clang-19",
  "libllvm19",
  "libclang-cpp19",
  "libclang-common-19-dev",
  "libclc-19",
  "libclc-19-dev",
  "libbsd0",
  "libedit2",
  "libffi8",
  codename === "bookworm" ? "libicu72" : "libicu76",
  "liblzma5",
  "libmd0",
  "libtinfo6",
  "libxml2",
  "libz3-4",
  "libzstd1",
  "zlib1g",
];

/** Returns the installed compiler for GPUs, if there is one. */
export function installedGpuCompiler(parent: string = gpuFolder()): string | undefined {
  const path = join(parent, compilerName, "clang++");
  return existsSync(path) ? path : undefined;
}

/**
 * Installs the compiler in `parent` and returns its path. Safe to run concurrently.
 *
 * @throws Failure if the packages can't be downloaded or unpacked
 */
export async function installGpuCompiler(parent: string, machine: Machine, progress: Progress): Promise<string> {
  await mkdir(parent, { recursive: true });
  return withLock(
    join(parent, `.${compilerName}.lock`),
    () => progress("Waiting for another process that is installing clang"),
    async () => installedGpuCompiler(parent) ?? (await install(parent, machine, progress)),
  );
}

async function install(parent: string, machine: Machine, progress: Progress): Promise<string> {
  const work = join(parent, `.${compilerName}.partial`);
  const root = join(work, "root");
  const final = join(parent, compilerName);
  await rm(root, { recursive: true, force: true });
  await mkdir(root, { recursive: true });
  progress("Reading Debian's package lists");
  const apt = await Apt.open(work, machine.codename, [machine.codename]);
  const packages = await apt.download(gpuPackages(machine.codename), machine.codename, (percent) =>
    progress(`Downloading clang 19: ${percent.toFixed(0)} %`),
  );
  for (const [index, file] of packages.entries()) {
    progress(`Unpacking clang 19: ${index + 1} of ${packages.length}`);
    const { status, output } = await run(["dpkg", "-x", file, root]);
    if (status !== 0) throw new Failure(`${file} cannot be unpacked: ${output.trim()}. Run the command again.`);
  }
  await Bun.write(join(root, "clang++"), wrapper(machine.architecture.triplet));
  await chmod(join(root, "clang++"), 0o755);
  const { status, output } = await run([join(root, "clang++"), "--target=nvptx64-nvidia-cuda", "--version"]);
  if (status !== 0) throw new Failure(`the installed clang does not start: ${output.trim()}`);
  await rm(final, { recursive: true, force: true });
  await rename(root, final);
  await rm(work, { recursive: true, force: true });
  return join(final, "clang++");
}

/** Starts clang with the unpacked libraries, from the folder in which the script is. */
const wrapper = (triplet: string): string =>
  [
    "#!/bin/sh",
    'folder=$(dirname "$0")',
    `LD_LIBRARY_PATH="$folder/usr/lib/${triplet}:$folder/lib/${triplet}:$folder/usr/lib/llvm-19/lib" \\`,
    '  exec "$folder/usr/lib/llvm-19/bin/clang" "$@"',
    "",
  ].join("\n");
