/** Finds the C++ compiler of the cpu backend: the machine's, or the clang of an installed Swift toolchain. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { cachedToolchains } from "../../src/cli/toolchain.ts";
import { Failure } from "../failure.ts";
import type { InstructionSet } from "./objects.ts";

export interface CppCompiler {
  readonly command: readonly string[];
  /** Additional flags of the link. */
  readonly linkFlags: readonly string[];
  /** The first line of `--version`. */
  readonly version: string;
  readonly isClang: boolean;
  /** The instruction sets of the target machine, if it is not this one. */
  readonly instructionSets?: readonly InstructionSet[];
}

const names = ["c++", "clang++", "g++"];

/** Returns whether a compiler is installed. */
export const hasCompiler = (): boolean => (installed() ?? brought()) !== undefined;

const remedy =
  process.platform === "darwin"
    ? "`xcode-select --install` brings one."
    : "Install one (Debian: `apt install g++`), or run `bun run setup` without ORCHARD_SKIP_METAL: the Swift that it " +
      "brings has clang.";

/** Returns a compiler. @throws {Failure} if there is none, with the command that installs one */
export async function findCompiler(): Promise<CppCompiler> {
  const found = installed() ?? brought();
  if (!found)
    throw new Failure(`The cpu backend needs a C++17 compiler, and ${names.join(", ")} are not on PATH. ${remedy}`);
  return describe(found);
}

/** Returns the machine's compiler and the one that set-up installed, if they exist. */
export const findCompilers = (): Promise<CppCompiler[]> =>
  Promise.all([installed(), brought()].filter((found) => found !== undefined).map(describe));

async function describe(found: Found): Promise<CppCompiler> {
  const { output } = await runOrFail("Asking the C++ compiler for its version", [...found.command, "--version"]);
  return { ...found, version: output.split("\n")[0] ?? "", isClang: output.includes("clang") };
}

type Found = Pick<CppCompiler, "command" | "linkFlags">;

function installed(): Found | undefined {
  const found = names.map((name) => Bun.which(name)).find((path) => path !== null);
  return found ? { command: [found], linkFlags: [] } : undefined;
}

/** Returns the clang of the newest toolchain in the cache, with its development files if the machine has none. */
function brought(): Found | undefined {
  const folder = cachedToolchains()[0];
  if (!folder) return undefined;
  const sysroot = join(folder, "sysroot");
  const clang = join(folder, "usr/libexec/swift/bin/clang++");
  return { command: [clang, ...(existsSync(sysroot) ? [`--sysroot=${sysroot}`] : [])], linkFlags: ["-fuse-ld=lld"] };
}
