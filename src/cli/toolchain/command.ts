/** `orchard toolchain install`: brings Swift with its clang, which compiles kernels for the software device. */
import { swiftCommand } from "../../core/commands.ts";
import { Failure } from "../failure.ts";
import { findSwift, toolchainsFolder } from "../toolchain.ts";
import { describeMachine, installedToolchain, installToolchain } from "./install.ts";

/** Where it is installed, and for which machine. Tests name others than this one's. */
export interface InstallPlaces {
  readonly folder: string;
  /** The file that names the system. */
  readonly release?: string;
}

/**
 * Installs the toolchain into the cache folder, unless one is there or on PATH. It says what it does, line by line.
 *
 * @returns the exit code: 1 with one sentence on stderr where it can't be installed
 */
export async function runInstall(places: InstallPlaces = { folder: toolchainsFolder() }): Promise<number> {
  try {
    console.log(await install(places));
    return 0;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    return 1;
  }
}

async function install({ folder, release }: InstallPlaces): Promise<string> {
  const installed = installedToolchain(folder);
  if (installed) return `It is installed: ${installed}`;
  const found = findSwift();
  if (found) return `Swift ${found.version} is there already: ${found.swift}`;
  if (process.platform === "darwin") throw new Failure(`Apple's tools bring Swift: ${swiftCommand()}`);
  return `Installed: ${await installToolchain(folder, await describeMachine(release), lines())}`;
}

/** A line for each step; of a step's percentages and counts, every tenth. */
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
