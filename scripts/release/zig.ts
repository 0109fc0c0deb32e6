/**
 * Zig's C++ compiler: clang with the headers and symbol lists of every version of glibc. Its programs run on systems
 * with that version or a newer one, and it compiles for both processors on either.
 */
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import type { CppCompiler } from "../cpu/compiler.ts";
import { type InstructionSet, intelSets } from "../cpu/objects.ts";
import { fixturesPython } from "../fixtures/environment.ts";

/** The oldest supported version of glibc: that of RHEL 8, Debian 10 and Amazon Linux 2023. */
export const oldestGlibc = "2.28";

/** The processors whose Linux packages contain the cpu backend's dylib. */
export const linuxArchitectures = ["x64", "arm64"] as const;
export type LinuxArchitecture = (typeof linuxArchitectures)[number];

/** Zig's names of the instruction sets have underscores. */
const targets: Readonly<Record<LinuxArchitecture, { triple: string; sets: readonly InstructionSet[] }>> = {
  x64: { triple: "x86_64-linux-gnu", sets: intelSets((level) => `-mcpu=x86_64_${level}`) },
  arm64: { triple: "aarch64-linux-gnu", sets: [{ name: "neon", flags: [] }] },
};

/** Returns the compiler for a processor, from PyPI's package in a virtual environment that is created if missing. */
export async function zigCompiler(architecture: LinuxArchitecture): Promise<CppCompiler> {
  const { triple, sets } = targets[architecture];
  const zig = [await fixturesPython(join(import.meta.dir, "zig.txt")), "-m", "ziglang"];
  const { output } = await runOrFail("Asking Zig for its version", [...zig, "version"]);
  return {
    command: [...zig, "c++", "-target", `${triple}.${oldestGlibc}`],
    linkFlags: [],
    version: `zig ${output.trim()}`,
    isClang: true,
    instructionSets: sets,
  };
}
