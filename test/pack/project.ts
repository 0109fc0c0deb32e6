/** An empty project to which the packed packages are added, on a machine without network or toolchain. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import packageFile from "../../package.json";
import { packFolders } from "../../scripts/release/pack.ts";
import { deviceTarget, stageDevice, stagePlatform } from "../../scripts/release/stage.ts";
import { stageMainOnce } from "../../scripts/release/staged.ts";
import { toolchainsFolder } from "../../src/cli/toolchain.ts";
import { buildFolder, cpuLibraryName, libraryName, platform } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { localRegistry } from "../support/registry.ts";
import { program } from "./programs.ts";

/** The folder for all files that tests of the packages write. */
export const { path: folder } = testFolder("pack");
export const project: string = join(folder, "project");
/** The package's path in `node_modules`. */
export const installed: string = join(project, "node_modules", packageFile.name);
/** An empty folder. */
export const nothing: string = join(folder, "nothing");

export const platformName = `${packageFile.name}-${platform}`;
/** The packed packages: the main one, and this platform's. */
export const main: string = join(folder, "packages", packageFile.name);
const platformFolder = join(folder, "packages", platformName);

/** Whether Metal is packed: on macOS, unless this run skips it. */
export const hasMetal: boolean = process.platform === "darwin" && existsSync(join(buildFolder, libraryName));

/** The path of this run's build of the software device. */
export const hasDevice: boolean =
  process.platform === "linux" && process.arch === "x64" && existsSync(join(buildFolder, libraryName));

/** The environment of an empty machine: no tool on PATH, no cache. */
export const environment: Readonly<Record<string, string>> = { PATH: nothing, HOME: nothing, TMPDIR: folder };
/** The setting that keeps Bun from installing missing packages. */
export const noRegistry: Readonly<Record<string, string>> = { BUN_CONFIG_REGISTRY: "http://127.0.0.1:9/" };

export interface Outcome {
  readonly out: string;
  readonly err: string;
  readonly exitCode: number;
}

/** Runs Bun in the project, with additional variables. */
export function bunWith(more: Readonly<Record<string, string>>, ...words: string[]): Outcome {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, ...words], {
    cwd: project,
    env: { ...environment, ...noRegistry, ...more },
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

/** Runs Bun in the project on an empty machine. */
export const bun = (...words: string[]): Outcome => bunWith({}, ...words);

/** Stages and packs; returns the tarballs of the package and of the platform's. */
export async function packHere(): Promise<[main: string, platform: string]> {
  mkdirSync(nothing, { recursive: true });
  await Bun.write(join(project, "package.json"), '{ "name": "empty", "type": "module" }\n');
  await Bun.write(join(project, "program.ts"), program);
  const dylibs = [join(buildFolder, cpuLibraryName), ...(hasMetal ? [join(buildFolder, libraryName)] : [])];
  await stageMainOnce(main);
  await stagePlatform(platformFolder, platform, dylibs);
  return (await packFolders([main, platformFolder], join(folder, "tarballs"))) as [string, string];
}

/** Adds the package to the project, and returns the names that were requested from the registry. */
export async function add(): Promise<string[]> {
  using registry = localRegistry(folder, { [packageFile.name]: main, [platformName]: platformFolder });
  const child = Bun.spawn([process.execPath, "add", packageFile.name], {
    cwd: project,
    env: { ...environment, BUN_CONFIG_REGISTRY: registry.url },
    stdout: "ignore",
    stderr: "pipe",
  });
  const err = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(err);
  return [...registry.served].sort();
}

/** The software device's package. Packing takes long, so a link is placed where Bun would install it. */
export const device = {
  name: `${packageFile.name}-${deviceTarget}`,
  folder: join(folder, "packages", `${packageFile.name}-${deviceTarget}`),
  /** Makes the package. */
  stage: () => stageDevice(device.folder, join(buildFolder, libraryName), join(buildFolder, "metal")),
  /** Installs the package in the project, until the result is disposed of. */
  added(): Disposable {
    const place = join(project, "node_modules", device.name);
    symlinkSync(device.folder, place);
    return { [Symbol.dispose]: () => rmSync(place) };
  },
} as const;

/** The environment of a machine with a compiler of kernels, and an empty cache otherwise. */
export function withCompiler(): Record<string, string> {
  const cache = mkdtempSync(join(folder, "cache-"));
  mkdirSync(join(cache, "orchard"));
  if (existsSync(toolchainsFolder())) symlinkSync(toolchainsFolder(), join(cache, "orchard", "toolchain"));
  return { XDG_CACHE_HOME: cache, PATH: process.env["PATH"]! };
}

/** Removes a package from the project, until the result is disposed of. */
export function without(name: string): Disposable {
  const place = join(project, "node_modules", name);
  renameSync(place, `${place}.away`);
  return { [Symbol.dispose]: () => renameSync(`${place}.away`, place) };
}

/** Replaces or removes a file of the installed package, until the result is disposed of. */
export function spoiled(paths: readonly string[], spoil: () => void): Disposable {
  const kept = paths.map((path) => [path, readFileSync(path)] as const);
  for (const [path, bytes] of kept) {
    rmSync(path); // a link to the file in Bun's cache
    writeFileSync(path, bytes);
  }
  spoil();
  return {
    [Symbol.dispose]() {
      for (const [path, bytes] of kept) writeFileSync(path, bytes);
    },
  };
}
