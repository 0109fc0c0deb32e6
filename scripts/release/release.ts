/** `bun run release`: packs the packages, adds them to projects of every kind, and publishes them. */
import { relative } from "node:path";
import { parseArgs } from "node:util";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";
import { pack, packBuilt, possiblePlatforms } from "./pack.ts";
import { tryPackages } from "./projects.ts";
import { publish } from "./publish.ts";

/**
 * Builds and packs into `build/release/tarballs`. With `--local` it publishes to a registry on the loopback address,
 * and adds the packages from there to projects of every kind. With `--built` it packs the dylibs of `bun run build`,
 * for this machine alone. With `--publish` it publishes the tarballs of a folder.
 */
export async function release(words: readonly string[]): Promise<void> {
  const { local, built, platform, publish: folder, provenance } = read(words);
  if (folder !== undefined) {
    for (const line of await publish(folder, { flags: provenance ? ["--provenance"] : [] })) console.log(line);
    return;
  }
  const tarballs = await (built ? packBuilt() : pack(platform ?? possiblePlatforms()));
  for (const path of tarballs)
    console.log(`${relative(packageRoot, path)}: ${(Bun.file(path).size / 1e6).toFixed(1)} MB`);
  if (local) await tryPackages(tarballs);
}

function read(words: readonly string[]) {
  try {
    return parseArgs({
      args: [...words],
      options: {
        local: { type: "boolean", default: false },
        platform: { type: "string", multiple: true },
        built: { type: "boolean", default: false },
        publish: { type: "string" },
        provenance: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    throw new Failure(error instanceof Error ? error.message : String(error));
  }
}
