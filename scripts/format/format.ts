import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { setUp } from "../toolchain/setup.ts";
import { clangFiles, clangFormat } from "./clang.ts";
import { lineProblems } from "./lines.ts";
import { formatSwift, swiftFiles, swiftFormatGap } from "./swift.ts";

/** Formats every language in place, and lists the lines that are still too long, which must be wrapped by hand. */
export async function formatEverything(): Promise<void> {
  const biome = join(packageRoot, "node_modules", ".bin", "biome");
  await runOrFail("Formatting TypeScript", [process.execPath, biome, "check", "--write", "."], { cwd: packageRoot });
  await clangFormat(clangFiles());
  const swift = await setUp();
  const gap = swift ? await swiftFormatGap(swift) : "ORCHARD_SKIP_METAL=1";
  if (swift && !gap) await formatSwift(swift, swiftFiles());
  else console.log(`Swift is left as it is: ${gap}`);
  for (const problem of await lineProblems()) console.log(problem);
}
