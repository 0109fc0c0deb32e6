import { homedir } from "node:os";
import { join } from "node:path";
import { environment } from "./environment.ts";
import { sourceFolder } from "./place.ts";

/** The folder of package.json, in a clone or the installed package. */
export const packageRoot: string = join(sourceFolder, "..");

/** The platform in names of build folders and packages: `linux-x64`, `darwin-arm64`. */
export const platform: string = `${process.platform}-${process.arch}`;

const extension = process.platform === "darwin" ? "dylib" : "so";

/** The file name of the metal backend's dylib. */
export const libraryName: string = `libOrchardMetal.${extension}`;

/** The file name of the cpu backend's dylib. */
export const cpuLibraryName: string = `libOrchardCPU.${extension}`;

/** Where `bun run build` puts the dylibs. */
export const buildFolder: string = join(packageRoot, "build", platform);

/** Returns Orchard's folder in the user's cache, for the toolchain and compiled kernels. */
export function cacheFolder(values: Record<string, string | undefined> = process.env): string {
  return join(environment("XDG_CACHE_HOME", values) ?? join(values["HOME"] || homedir(), ".cache"), "orchard");
}
