import { readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import packageFile from "../../package.json";
import { stageMain } from "../../scripts/release/stage.ts";
import { buildFolder, cpuLibraryName, packageRoot } from "../../src/core/paths.ts";

/** Installs the package and its dependencies in a folder, as users do. @returns its folder */
export async function installPackage(folder: string): Promise<string> {
  const [modules, packages] = [join(folder, "node_modules"), join(packageRoot, "node_modules")];
  const installed = join(modules, packageFile.name);
  await stageMain(installed);
  rmSync(join(modules, "tsconfig.json")); // needed only for compilation
  for (const each of readdirSync(packages)) symlinkSync(join(packages, each), join(modules, each));
  return installed;
}

/** Environment variables that make an installed package use this machine's build of the cpu dylib. */
export const buildHere = { ORCHARD_CPU_LIBRARY: join(buildFolder, cpuLibraryName) } as const;
