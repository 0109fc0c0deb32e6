/**
 * The commands that messages recommend. A clone has scripts and can build; the installed package has only the `orchard`
 * command and comes with its dylibs. Messages take commands only from this file.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "./paths.ts";

/** Whether this is a clone of the repository. The installed package has no scripts. */
export const isClone: boolean = existsSync(join(packageRoot, "scripts", "launch.ts"));

/** Commands of `orchard` that are also scripts in package.json. The scripts build first. */
const scripts: readonly string[] = ["train", "generate", "doctor"];

/**
 * Returns the command line that runs `orchard` with these arguments.
 *
 * @example orchardCommand("train --resume"); // "bun run train --resume", or "bunx orchard train --resume"
 */
export function orchardCommand(words: string, clone: boolean = isClone): string {
  if (!clone) return `bunx orchard ${words}`;
  return scripts.includes(words.split(" ")[0]) ? `bun run ${words}` : `bun src/cli/orchard.ts ${words}`;
}

/** Returns the command that builds or reinstalls the dylibs. */
export const dylibCommand = (clone: boolean = isClone): string => (clone ? "bun run build" : "bun install --force");

/** Returns the same advice as a sentence without a period. */
export const dylibAdvice = (clone: boolean = isClone): string =>
  clone ? "`bun run build` rebuilds it" : "`bun install --force` reinstalls the package's dylib";

/** Returns the command that installs Swift. */
export function swiftCommand(clone: boolean = isClone): string {
  if (process.platform === "darwin") return "xcode-select --install";
  return clone ? "bun run setup" : orchardCommand("toolchain install", clone);
}

/** Returns the command that installs a BLAS with LAPACK on Linux. */
export const blasCommand = (clone: boolean = isClone): string =>
  clone ? "bun run setup" : "install OpenBLAS (libopenblas0), or name one by ORCHARD_BLAS";
