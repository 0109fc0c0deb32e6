/**
 * Runs Bun's build for musl on a system with glibc. The loader is Debian 13's musl; GCC's C++ libraries come from a
 * wheel for Alpine that bundles them. All are installed in the user's cache, without root.
 */
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { Apt } from "../../src/cli/toolchain/apt.ts";
import { cacheFolder } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";
import { fixturesPython } from "../fixtures/environment.ts";
import { debianRelease } from "../toolchain/blas.ts";
import { installOnce, type Progress } from "../toolchain/install_once.ts";

/** Debian 12's musl, 1.2.3, does not support relative relocations (`DT_RELR`), which the C++ libraries use. */
const release = "trixie";
const processor = process.arch === "arm64" ? "aarch64" : "x86_64";
const loader = `ld-musl-${processor}.so.1`;
const wheel = "greenlet==3.5.6";
const bunPackage = `@oven/bun-linux-${process.arch === "arm64" ? "aarch64" : "x64"}-musl`;

/** Installs missing parts. Returns the command that runs Bun. @throws {Failure} with a remedy, on other systems */
export async function installMusl(progress: Progress): Promise<readonly string[]> {
  const folder = join(cacheFolder(), "musl");
  const [libraries, bun] = [join(folder, "libraries-1"), join(folder, `bun-${Bun.version}`)];
  await installOnce(libraries, progress, (work) => installLibraries(work, progress));
  await installOnce(bun, progress, (work) => installBun(work, progress));
  const program = join(bun, "node_modules", bunPackage, "bin", "bun");
  const command = [join(libraries, loader), "--library-path", libraries, program];
  const { output } = await runOrFail("Starting Bun's build for musl", [...command, "--version"]);
  if (output.trim() !== Bun.version) throw new Failure(`expected Bun ${Bun.version} for musl, got ${output.trim()}`);
  return command;
}

async function installLibraries(work: string, progress: Progress): Promise<void> {
  const [downloads, unpacked] = [join(work, "downloads"), join(work, "unpacked")];
  await mkdir(unpacked);
  progress("Downloading musl");
  const apt = await Apt.open(downloads, await debianRelease(), [release]);
  for (const file of await apt.download(["musl"], release, () => undefined))
    await runOrFail(`Unpacking ${basename(file)}`, ["dpkg", "-x", file, unpacked]);
  await copyFile(join(unpacked, "usr", "lib", `${processor}-linux-musl`, "libc.so"), join(work, loader));
  await runOrFail("Making musl's loader executable", ["chmod", "+x", join(work, loader)]);
  progress("Downloading GCC's libraries for musl");
  const pip = [await fixturesPython(join(import.meta.dir, "..", "release", "zig.txt")), "-m", "pip", "--quiet"];
  const kind = ["--platform", `musllinux_1_2_${processor}`, "--python-version", "3.12", "--only-binary", ":all:"];
  await runOrFail(`Downloading ${wheel}`, [...pip, "download", "--no-deps", ...kind, "--dest", downloads, wheel]);
  const file = (await readdir(downloads)).find((name) => name.endsWith(".whl"))!;
  await runOrFail(`Unpacking ${file}`, [pip[0], "-m", "zipfile", "-e", join(downloads, file), unpacked]);
  const folder = join(unpacked, "greenlet.libs");
  for (const name of existsSync(folder) ? await readdir(folder) : [])
    await copyFile(join(folder, name), join(work, name.startsWith("libstdc++") ? "libstdc++.so.6" : name));
  if (!existsSync(join(work, "libstdc++.so.6"))) throw new Failure(`expected ${file} to contain libstdc++`);
  for (const each of [downloads, unpacked]) await rm(each, { recursive: true, force: true });
}

/** Installs Bun from the configured registry. The installer verifies the package's checksum. */
async function installBun(work: string, progress: Progress): Promise<void> {
  progress(`Downloading Bun ${Bun.version} for musl`);
  await Bun.write(join(work, "package.json"), JSON.stringify({ dependencies: { [bunPackage]: Bun.version } }));
  await runOrFail(
    `Installing ${bunPackage} ${Bun.version}`,
    [process.execPath, "install", "--os", "linux", "--cpu", process.arch, "--libc", "musl"],
    { cwd: work },
  );
}
