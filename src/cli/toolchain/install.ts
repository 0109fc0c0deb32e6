/** Unpacks Swift from Debian's packages into the user's cache, without root, so that it runs on an older Debian too. */
import { existsSync } from "node:fs";
import { access, chmod, constants, lstat, mkdir, open, readdir, rename, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { run, runOrFail } from "../run.ts";
import { type Architecture, architecture, compilerFlags, programFlags } from "../toolchain.ts";
import { Apt } from "./apt.ts";
import { withLock } from "./lock.ts";
import { developmentPackages, isKnownRelease, swiftPackages, swiftSuite, toolchainName } from "./packages.ts";

const bytesNeeded = 4e9; // packages 0.6 GB, unpacked 2.3 GB, and temporary files

export type Progress = (text: string) => void;

/** The machine to install the toolchain for. */
export interface Machine {
  readonly architecture: Architecture;
  /** The codename of the Debian release, from /etc/os-release. */
  readonly codename: string;
}

const alternative =
  "Install Swift 6.0 or newer (swift.org/install) and put it on PATH, or set ORCHARD_SKIP_METAL=1 to skip it.";

export async function describeMachine(release = "/etc/os-release"): Promise<Machine> {
  if (!architecture) throw new Failure(`Debian has no Swift for ${process.arch}. ${alternative}`);
  if (!Bun.which("apt-get") || !Bun.which("dpkg"))
    throw new Failure(`Swift is not on PATH, and this machine has no apt-get to install it. ${alternative}`);
  const facts = parseRelease(await Bun.file(release).text());
  const codename = facts["VERSION_CODENAME"] ?? "";
  const system = facts["PRETTY_NAME"] ?? "another system";
  if (facts["ID"] !== "debian" || !isKnownRelease(codename))
    throw new Failure(
      `Swift is not on PATH, and can be installed only on Debian 12 and 13, not on ${system}. ${alternative}`,
    );
  return { architecture, codename };
}

/** Parses lines of the form `NAME="value"`. */
export function parseRelease(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/^([A-Z_]+)="?([^"\n]*)"?$/gm)].map(([, name, value]) => [name, value]));
}

/** Returns the toolchain's folder in `parent`, if it is completely installed. */
export function installedToolchain(parent: string): string | undefined {
  const final = join(parent, toolchainName);
  return isInstalled(final) ? final : undefined;
}

/** Installs the toolchain in `parent` and returns its folder. Safe to run concurrently. */
export async function installToolchain(parent: string, machine: Machine, progress: Progress): Promise<string> {
  const final = join(parent, toolchainName);
  await makeFolder(parent);
  return withLock(
    join(parent, `.${toolchainName}.lock`),
    () => progress("Waiting for another process that is installing Swift"),
    async () => {
      if (!isInstalled(final)) await install(parent, final, machine, progress);
      return final;
    },
  );
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
    await access(path, constants.W_OK);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Failure(`The cache folder cannot be written (${reason}). Set XDG_CACHE_HOME to a writable folder.`);
  }
}

/** The stamp is written last, inside the folder that is renamed into place. */
const isInstalled = (folder: string): boolean => existsSync(join(folder, "stamp.json"));

async function install(parent: string, final: string, machine: Machine, progress: Progress): Promise<void> {
  await requireSpace(parent);
  const work = join(parent, `.${toolchainName}.partial`);
  const root = join(work, "root");
  // removes what a killed set-up has unpacked, but keeps its downloads
  await rm(root, { recursive: true, force: true });
  await mkdir(root, { recursive: true });
  const needsSysroot = !(await hasDevelopmentFiles(machine));

  progress("Reading Debian's package lists");
  const apt = await Apt.open(work, machine.codename, [swiftSuite, machine.codename]);
  const download = (packages: readonly string[], suite: string, what: string) =>
    apt.download(packages, suite, (percent) => progress(`Downloading ${what}: ${percent.toFixed(0)} %`));
  const swift = await download(swiftPackages, swiftSuite, "Swift 6.0.3");
  await unpack(swift, root, "Swift", progress);
  if (needsSysroot) {
    const development = await download(
      developmentPackages(machine.codename),
      machine.codename,
      "C and C++ development files",
    );
    await unpack(development, join(root, "sysroot"), "development files", progress);
    await Bun.write(join(root, "sysroot", "SDKSettings.json"), `${JSON.stringify(sdkSettings(machine))}\n`);
  }
  progress("Making Swift independent of the system's libraries");
  await patchPrograms(root, final, machine.architecture);
  await writeManifestCompiler(root, final);
  await Bun.write(
    join(root, "stamp.json"),
    `${JSON.stringify({ name: toolchainName, packages: swift.map(fileName) }, null, 2)}\n`,
  );
  await rm(final, { recursive: true, force: true });
  await rename(root, final);
  await rm(work, { recursive: true, force: true });
}

/** The settings file that `swiftc -sdk` requires. The values are meaningful only in Apple's SDKs. */
const sdkSettings = ({ codename }: Machine) => ({
  Version: "1.0",
  CanonicalName: codename,
  VersionMap: { macOS_iOSMac: {}, iOSMac_macOS: {} },
});

const fileName = (path: string) => path.slice(path.lastIndexOf("/") + 1);

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
const largerDisk = "Free some space, or set XDG_CACHE_HOME to a folder on a larger disk.";

async function requireSpace(folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free < bytesNeeded)
    throw new Failure(
      `Installing Swift needs ${gigabytes(bytesNeeded)}, and ${folder} has ${gigabytes(free)} free. ${largerDisk}`,
    );
}

/** Whether there are start files, headers and GCC's C++ library, which linking requires. */
async function hasDevelopmentFiles({ architecture: { triplet } }: Machine): Promise<boolean> {
  if (!existsSync(`/usr/lib/${triplet}/crt1.o`) || !existsSync("/usr/include/stdio.h")) return false;
  const versions = await readdir(`/usr/lib/gcc/${triplet}`).catch(() => []);
  return versions.some(
    (version) =>
      existsSync(`/usr/lib/gcc/${triplet}/${version}/libstdc++.so`) && existsSync(`/usr/include/c++/${version}/vector`),
  );
}

async function unpack(packages: readonly string[], folder: string, what: string, progress: Progress): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [index, file] of packages.entries()) {
    progress(`Unpacking ${what}: ${index + 1} of ${packages.length}`);
    const { status, output } = await run(["dpkg", "-x", file, folder]);
    if (status === 0) continue;
    if (/No space left/i.test(output))
      throw new Failure(`The disk is full: ${fileName(file)} cannot be unpacked into ${folder}. ${largerDisk}`);
    await rm(file, { force: true }); // so that the next set-up downloads it again
    throw new Failure(
      `${fileName(file)} cannot be unpacked: ${output.trim()}. Run the set-up again to download it again.`,
    );
  }
}

/**
 * Patches programs to use the unpacked loader, and programs and libraries to use the unpacked libraries, at their final
 * paths. Programs use RPATH, which unlike RUNPATH also applies to the dependencies of libraries.
 */
async function patchPrograms(root: string, final: string, { triplet, loader }: Architecture): Promise<void> {
  const here = join(root, "usr/lib", triplet);
  const there = join(final, "usr/lib", triplet);
  const patchelf = [join(here, loader), "--library-path", here, join(root, "usr/bin/patchelf"), "--add-rpath", there];
  const swift = join(root, "usr/libexec/swift");
  const programs = await dynamicFiles(swift, "bin/*");
  const libraries = await dynamicFiles(swift, "lib/*.so*", "lib/swift/{linux,host,pm}/**/*.so");
  const asProgram = ["--force-rpath", "--set-interpreter", join(there, loader)];
  await runOrFail("Patching Swift's programs", [...patchelf, ...asProgram, ...programs]);
  await runOrFail("Patching Swift's libraries", [...patchelf, ...libraries]);
}

/** Returns the dynamically linked ELF files, without symbolic links, that match the patterns. */
async function dynamicFiles(folder: string, ...patterns: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const pattern of patterns)
    for await (const path of new Bun.Glob(pattern).scan({ cwd: folder, absolute: true, followSymlinks: false }))
      if (await isElf(path)) found.push(path);
  return found;
}

async function isElf(path: string): Promise<boolean> {
  if ((await lstat(path)).isSymbolicLink()) return false;
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && buffer.toString("latin1") === "\x7fELF";
  } finally {
    await file.close();
  }
}

/**
 * Writes a wrapper of `swiftc` that adds the required flags. SwiftPM compiles and runs a package's manifest without the
 * flags of the build.
 */
async function writeManifestCompiler(root: string, final: string): Promise<void> {
  const path = join(root, "swiftc-manifest");
  const hasSysroot = existsSync(join(root, "sysroot"));
  const flags = [...compilerFlags(final, hasSysroot), ...programFlags(final)].map(shellQuote).join(" ");
  await Bun.write(path, `#!/bin/sh\nexec ${shellQuote(join(final, "usr/libexec/swift/bin/swiftc"))} "$@" ${flags}\n`);
  await chmod(path, 0o755);
}

const shellQuote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
