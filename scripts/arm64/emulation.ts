/**
 * Emulates Arm's processors: QEMU's user-mode emulator with arm64's C library, and Bun's build for arm64. They are
 * installed in the user's cache, without root. Debian 13's emulator is a static program, which also runs on older
 * releases.
 */
import { existsSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { Apt } from "../../src/cli/toolchain/apt.ts";
import { cacheFolder } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";
import { debianRelease } from "../toolchain/blas.ts";
import { installOnce, type Progress } from "../toolchain/install_once.ts";

/** Runs Bun's build for arm64 on this machine. */
export interface Emulation {
  /** Returns the command for a processor, by QEMU's name. */
  readonly command: (processor: string) => readonly string[];
}

const release = "trixie";
const packages = ["qemu-user", "libc6-arm64-cross"] as const;
/** The parts of the packages that are kept: the emulator, and the folder that serves as the root of arm64's files. */
const [emulator, root] = ["usr/bin/qemu-aarch64", "usr/aarch64-linux-gnu"] as const;

const folderOf = (name: string): string => join(cacheFolder(), "arm64", name);

/** Installs missing parts. @throws {Failure} with a remedy, on systems other than Debian */
export async function installEmulation(progress: Progress): Promise<Emulation> {
  const qemu = folderOf("qemu-10-debian13-1");
  const bun = folderOf(`bun-${Bun.version}`);
  await installOnce(qemu, progress, (work) => installQemu(work, progress));
  await installOnce(bun, progress, (work) => installBun(work, progress));
  const command = (processor: string) => [
    join(qemu, emulator),
    "-cpu",
    processor,
    "-L",
    join(qemu, root),
    join(bun, bunPath),
  ];
  await checkBun(command("max"));
  return { command };
}

async function installQemu(work: string, progress: Progress): Promise<void> {
  const codename = await debianRelease();
  const [downloads, unpacked] = [join(work, "downloads"), join(work, "unpacked")];
  progress("Reading Debian's package lists");
  const apt = await Apt.open(downloads, codename, [release]);
  const files = await apt.download(packages, release, (percent) =>
    progress(`Downloading the emulator: ${percent.toFixed(0)} %`),
  );
  for (const file of files) await runOrFail(`Unpacking ${basename(file)}`, ["dpkg", "-x", file, unpacked]);
  for (const path of [emulator, root]) {
    if (!existsSync(join(unpacked, path))) throw new Failure(`expected Debian's packages to contain ${path}`);
    await cp(join(unpacked, path), join(work, path), { recursive: true, verbatimSymlinks: true });
  }
  for (const folder of [downloads, unpacked]) await rm(folder, { recursive: true, force: true });
}

const bunPackage = "@oven/bun-linux-aarch64";
const bunPath = join("node_modules", bunPackage, "bin", "bun");

/** Installs from the configured registry; the installation checks the package's checksum. */
async function installBun(work: string, progress: Progress): Promise<void> {
  progress(`Downloading Bun ${Bun.version} for arm64`);
  await Bun.write(join(work, "package.json"), JSON.stringify({ dependencies: { [bunPackage]: Bun.version } }));
  await runOrFail(
    `Installing ${bunPackage} ${Bun.version}`,
    [process.execPath, "install", "--os", "linux", "--cpu", "arm64"],
    { cwd: work },
  );
}

async function checkBun(command: readonly string[]): Promise<void> {
  const program = 'process.arch + " " + Bun.version';
  const { output } = await runOrFail("Starting Bun's build for arm64", [...command, "--print", program]);
  const expected = `arm64 ${Bun.version}`;
  if (output.trim() !== expected)
    throw new Failure(`expected the emulated Bun to be ${expected}, got ${output.trim()}`);
}
