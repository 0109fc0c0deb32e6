/** `orchard toolchain install`: installs Swift with its clang, which compiles kernels for the software device. */
import { swiftCommand } from "../../core/commands.ts";
import { Failure } from "../failure.ts";
import { findSwift, toolchainsFolder } from "../toolchain.ts";
import { gpuFolder, installedGpuCompiler, installGpuCompiler } from "./gpu.ts";
import { describeMachine, installedToolchain, installToolchain } from "./install.ts";

/** Where to install, and for which machine. Tests pass other values. */
export interface InstallPlaces {
  readonly folder: string;
  /** The file that names the system. Default: /etc/os-release. */
  readonly release?: string;
}

/**
 * Installs the toolchain into the cache folder, unless one is there or on PATH. Prints each step.
 *
 * @returns the exit code: 1, with a message on stderr, if it can't be installed
 */
export function runInstall(places: InstallPlaces = { folder: toolchainsFolder() }): Promise<number> {
  return report(() => install(places));
}

async function report(body: () => Promise<string>): Promise<number> {
  try {
    console.log(await body());
    return 0;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    return 1;
  }
}

/**
 * Installs the compiler for NVIDIA GPUs into the cache folder, unless it is there. Prints each step.
 *
 * @returns the exit code: 1, with a message on stderr, if it can't be installed
 */
export async function runInstallGpu(places: InstallPlaces = { folder: gpuFolder() }): Promise<number> {
  return report(async () => {
    const installed = installedGpuCompiler(places.folder);
    if (installed) return `Already installed: ${installed}`;
    if (process.platform !== "linux") throw new Failure("NVIDIA GPUs are supported only on Linux.");
    return `Installed: ${await installGpuCompiler(places.folder, await describeMachine(places.release), lines())}`;
  });
}

async function install({ folder, release }: InstallPlaces): Promise<string> {
  const installed = installedToolchain(folder);
  if (installed) return `Already installed: ${installed}`;
  const found = findSwift();
  if (found) return `Swift ${found.version} is already installed: ${found.swift}`;
  if (process.platform === "darwin") throw new Failure(`On macOS, install Swift with Apple's tools: ${swiftCommand()}`);
  return `Installed: ${await installToolchain(folder, await describeMachine(release), lines())}`;
}

/** Prints a line per step, and every tenth of a step's progress. */
function lines(): (text: string) => void {
  let [before, tenth] = ["", -1];
  return (text) => {
    const [step = "", progress = ""] = text.split(": ");
    const [, done, all] = /^(\d+)(?: of (\d+)| %)/.exec(progress) ?? [];
    const now = done === undefined ? -1 : Math.floor((10 * Number(done)) / Number(all ?? 100));
    if (step === before && now <= tenth) return;
    [before, tenth] = [step, now];
    console.log(text);
  };
}
