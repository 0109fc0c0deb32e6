/** The C++ compiler of the cpu backend: the machine's own, or the clang that came with a Swift toolchain. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { cachedToolchains } from "../../src/cli/toolchain.ts";
import { Failure } from "../failure.ts";
import type { InstructionSet } from "./objects.ts";

export interface CppCompiler {
  readonly command: readonly string[];
  /** What a link needs further. */
  readonly linkFlags: readonly string[];
  /** The first line of `--version`. */
  readonly version: string;
  readonly isClang: boolean;
  /** Those of the machine that it compiles for, where that is not this one. */
  readonly instructionSets?: readonly InstructionSet[];
}

const names = ["c++", "clang++", "g++"];

/** Whether there is one without bringing anything. */
export const hasCompiler = (): boolean => (installed() ?? brought()) !== undefined;

const remedy =
  process.platform === "darwin"
    ? "`xcode-select --install` brings one."
    : "Install one (Debian: `apt install g++`), or run `bun run setup` without ORCHARD_SKIP_METAL: the Swift that it " +
      "brings has clang.";

/** @throws {Failure} where there is none, with what brings one. */
export async function findCompiler(): Promise<CppCompiler> {
  const found = installed() ?? brought();
  if (!found)
    throw new Failure(`The cpu backend needs a C++17 compiler, and ${names.join(", ")} are not on PATH. ${remedy}`);
  return describe(found);
}

/** The machine's own and the one that set-up brought, as far as they are there. */
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

/**
 * Clang of the newest toolchain in the cache, with the development files that came with it where the machine has none.
 */
function brought(): Found | undefined {
  const folder = cachedToolchains()[0];
  if (!folder) return undefined;
  const sysroot = join(folder, "sysroot");
  const clang = join(folder, "usr/libexec/swift/bin/clang++");
  return { command: [clang, ...(existsSync(sysroot) ? [`--sysroot=${sysroot}`] : [])], linkFlags: ["-fuse-ld=lld"] };
}
