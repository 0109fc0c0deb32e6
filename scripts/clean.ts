/** `bun run clean`: removes build products from this clone. */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, packageRoot } from "../src/core/paths.ts";
import { Failure } from "./failure.ts";

/** All folders that builds, tests and the site write to in a clone. */
export const builtFolders: readonly string[] = [
  "build",
  "native/.build",
  "swift/.build",
  "site/build",
  "site/node_modules",
];

/**
 * Removes build folders and, with `--caches`, the caches that all clones on this machine share: the toolchain, object
 * files and compiled kernels.
 *
 * @param root the clone
 * @param caches the folder of caches
 * @throws {Failure} for an unknown argument
 */
export async function clean(words: readonly string[], root = packageRoot, caches = cacheFolder()): Promise<void> {
  const unknown = words.find((word) => word !== "--caches");
  if (unknown !== undefined) throw new Failure(`clean: unknown option ${unknown}; the only option is --caches`);
  const folders = builtFolders.map((folder) => join(root, folder));
  if (words.includes("--caches")) folders.push(caches);
  const removed = folders.filter((folder) => existsSync(folder));
  for (const folder of removed) await rm(folder, { recursive: true, force: true });
  console.log(removed.length > 0 ? `Removed:\n${removed.map((path) => `  ${path}`).join("\n")}` : "Nothing to remove.");
}
