import { relative } from "node:path";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { withSpinner } from "../progress.ts";
import { buildLibrary } from "./dylib.ts";

/** Builds the dylib and prints its path. */
export async function build(swift: SwiftToolchain): Promise<void> {
  const path = await withSpinner("Building the dylib", () => buildLibrary(swift));
  const megabytes = Bun.file(path).size / 1e6;
  console.log(`${relative(packageRoot, path)}: ${megabytes.toFixed(1)} MB`);
}
