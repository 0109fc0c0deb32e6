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

/** The Linux systems whose packages contain the cpu backend's dylib: a processor, and its C library if that is musl. */
export const linuxTargets = ["x64", "arm64", "x64-musl", "arm64-musl"] as const;
export type LinuxTarget = (typeof linuxTargets)[number];

/** Zig's names of the processors' instruction sets have underscores. */
const intel: readonly InstructionSet[] = intelSets((level) => `-mcpu=x86_64_${level}`);
const arm: readonly InstructionSet[] = [{ name: "neon", flags: [] }];
const targets: Readonly<Record<LinuxTarget, { triple: string; sets: readonly InstructionSet[] }>> = {
  x64: { triple: `x86_64-linux-gnu.${oldestGlibc}`, sets: intel },
  arm64: { triple: `aarch64-linux-gnu.${oldestGlibc}`, sets: arm },
  "x64-musl": { triple: "x86_64-linux-musl", sets: intel },
  "arm64-musl": { triple: "aarch64-linux-musl", sets: arm },
};

/** Returns the compiler for a system, from PyPI's package in a virtual environment that is created if missing. */
export async function zigCompiler(target: LinuxTarget): Promise<CppCompiler> {
  const { triple, sets } = targets[target];
  const zig = [await fixturesPython(join(import.meta.dir, "zig.txt")), "-m", "ziglang"];
  const { output } = await runOrFail("Asking Zig for its version", [...zig, "version"]);
  return {
    command: [...zig, "c++", "-target", triple],
    linkFlags: [],
    version: `zig ${output.trim()}`,
    isClang: true,
    instructionSets: sets,
  };
}
