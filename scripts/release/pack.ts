/** Creates the packages that this machine can build, as tarballs with their checksums. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import packageFile from "../../package.json";
import { devicePlatforms } from "../../src/backend/library.ts";
import { runOrFail } from "../../src/cli/run.ts";
import { buildFolder, cpuLibraryName, libraryName, platform } from "../../src/core/paths.ts";
import { buildCpuLibrary } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import { withSpinner } from "../progress.ts";
import { buildPortable, releaseFolder } from "./dylib.ts";
import { deviceTarget, stageDevice, stageMain, stagePlatform } from "./stage.ts";
import { linuxTargets } from "./zig.ts";

/**
 * The platforms whose packages this machine can build: Linux with Zig on every system, macOS on a Mac, and the software
 * device if it is built.
 */
export const possiblePlatforms = (): string[] => [
  ...linuxTargets.map((system) => `linux-${system}`),
  ...(devicePlatforms.includes(platform) && existsSync(metalDylib) ? [deviceTarget] : []),
  ...(process.platform === "darwin" && process.arch === "arm64" ? ["darwin-arm64"] : []),
];

/** The metal backend's dylib, as this machine builds it. */
const metalDylib = join(buildFolder, libraryName);

export const tarballFolder: string = join(releaseFolder, "tarballs");

/** Builds and packs. Returns the tarballs' paths, platform packages first. */
export async function pack(platforms: readonly string[] = possiblePlatforms()): Promise<string[]> {
  const staged: string[] = [];
  for (const target of platforms) {
    const folder = stagingFolder(target);
    staged.push(folder);
    if (target === deviceTarget) {
      await stageBuiltDevice(folder);
      continue;
    }
    const dylibs = await withSpinner(`Building the dylibs for ${target}`, (progress) => dylibsOf(target, progress));
    await stagePlatform(folder, target, dylibs);
  }
  return packWithMain(staged);
}

/** Packs the dylibs of `bun run build`, which need not load on other machines, to try a release without Zig. */
export async function packBuilt(): Promise<string[]> {
  const dylib = join(buildFolder, cpuLibraryName);
  if (!existsSync(dylib)) throw new Failure(`There is no ${dylib}; \`bun run build\` makes it.`);
  const isMac = process.platform === "darwin";
  const staged = [stagingFolder(platform)];
  await stagePlatform(staged[0], platform, isMac ? [dylib, metalDylib] : [dylib]);
  if (possiblePlatforms().includes(deviceTarget)) {
    staged.push(stagingFolder(deviceTarget));
    await stageBuiltDevice(staged[1]);
  }
  return packWithMain(staged);
}

const stagingFolder = (target: string): string => join(releaseFolder, "packages", `${packageFile.name}-${target}`);

/** Stages the package itself, and packs it after the staged packages of platforms. */
async function packWithMain(staged: readonly string[]): Promise<string[]> {
  const main = join(releaseFolder, "packages", packageFile.name);
  await stageMain(main);
  return packFolders([...staged, main], tarballFolder);
}

/** The software device of `bun run build`: for the glibc of this machine and newer ones. */
async function stageBuiltDevice(folder: string): Promise<void> {
  if (!devicePlatforms.includes(platform))
    throw new Failure(
      `The software device's package can be made only on ${devicePlatforms.join(", ")}, not on ${platform}.`,
    );
  if (!existsSync(metalDylib)) throw new Failure(`There is no ${metalDylib}; \`bun run build\` makes it.`);
  await stageDevice(folder, metalDylib, join(buildFolder, "metal"));
}

async function dylibsOf(target: string, progress: (text: string) => void): Promise<string[]> {
  const system = linuxTargets.find((name) => target === `linux-${name}`);
  if (system) return [await buildPortable(system, progress)];
  if (target !== "darwin-arm64" || !possiblePlatforms().includes(target))
    throw new Failure(`This machine can make packages for ${possiblePlatforms().join(", ")}, not for ${target}.`);
  if (!existsSync(metalDylib)) throw new Failure(`There is no ${metalDylib}; \`bun run build\` makes it.`);
  await buildCpuLibrary(progress);
  return [join(buildFolder, cpuLibraryName), metalDylib];
}

/** Packs each folder into another, which is emptied first, with the checksums of all. */
export async function packFolders(folders: readonly string[], destination: string): Promise<string[]> {
  await rm(destination, { recursive: true, force: true });
  await mkdir(destination, { recursive: true });
  const tarballs: string[] = [];
  for (const folder of folders) {
    const before = new Set(await readdir(destination));
    const command = [process.execPath, "pm", "pack", "--destination", destination, "--quiet"];
    await runOrFail(`Packing ${basename(folder)}`, command, { cwd: folder });
    tarballs.push(...(await readdir(destination)).filter((file) => !before.has(file)));
  }
  const lines = tarballs.map(async (file) => `${await checksum(join(destination, file))}  ${file}\n`);
  await Bun.write(join(destination, "SHA256SUMS"), (await Promise.all(lines)).join(""));
  return tarballs.map((file) => join(destination, file));
}

const checksum = async (path: string): Promise<string> =>
  createHash("sha256")
    .update(await Bun.file(path).bytes())
    .digest("hex");
