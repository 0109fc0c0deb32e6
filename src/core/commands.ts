/**
 * The commands that messages advise. A clone has scripts and can build; where the package is installed, there is only
 * its own command, and its dylibs come with it. Messages name commands through this file alone.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "./paths.ts";

/** Whether this is a clone of the repository, not the installed package, which has no scripts. */
export const isClone: boolean = existsSync(join(packageRoot, "scripts", "launch.ts"));

/** Commands of `orchard` that package.json has as scripts, which build first. */
const scripts: readonly string[] = ["train", "generate", "doctor"];

/**
 * How the user runs `orchard` with these words.
 *
 * @example orchardCommand("train --resume"); // "bun run train --resume", or "bunx orchard train --resume"
 */
export function orchardCommand(words: string, clone: boolean = isClone): string {
  if (!clone) return `bunx orchard ${words}`;
  return scripts.includes(words.split(" ")[0]!) ? `bun run ${words}` : `bun src/cli/orchard.ts ${words}`;
}

/** The command that makes or brings the dylibs anew. */
export const dylibCommand = (clone: boolean = isClone): string => (clone ? "bun run build" : "bun install --force");

/** The same as a sentence, without its period. */
export const dylibAdvice = (clone: boolean = isClone): string =>
  clone ? "`bun run build` makes it anew" : "`bun install --force` installs the package's own anew";

/** What brings Swift. */
export function swiftCommand(clone: boolean = isClone): string {
  if (process.platform === "darwin") return "xcode-select --install";
  return clone ? "bun run setup" : orchardCommand("toolchain install", clone);
}

/** What brings the BLAS in which LAPACK comes, on Linux. */
export const blasCommand = (clone: boolean = isClone): string =>
  clone ? "bun run setup" : "install OpenBLAS (libopenblas0), or name one by ORCHARD_BLAS";
