/** Finds the dylibs that chosen test files need and that are not built. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cpuLibraryCandidates } from "../../src/backend/cpu/loader.ts";
import { whyMissing } from "../../src/backend/library.ts";
import { libraryCandidates } from "../../src/backend/metal/loader.ts";
import { getBackend } from "../../src/backend/policy.ts";
import { environment, environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { importsUnder } from "./imports.ts";

/** The backends with a dylib, in the order of builds: the variable that names one, and the paths to try. */
const dylibs = {
  cpu: ["ORCHARD_CPU_LIBRARY", cpuLibraryCandidates],
  metal: ["ORCHARD_LIBRARY", libraryCandidates],
} as const;

export type Dylib = keyof typeof dylibs;

/** Whether a dylib has to be built: it is neither there, nor named by a variable, nor skipped on purpose. */
function isMissing(name: Dylib): boolean {
  if (name === "metal" && environmentFlag("ORCHARD_SKIP_METAL")) return false;
  const [variable, candidates] = dylibs[name];
  return environment(variable) === undefined && whyMissing(variable, candidates()) !== undefined;
}

/** Returns the dylibs that are missing and that a run of these test files needs. */
export function dylibsToBuild(files: readonly string[], missing: (name: Dylib) => boolean = isMissing): Dylib[] {
  const found = (Object.keys(dylibs) as Dylib[]).filter(missing);
  return found.length === 0 ? found : found.filter(needOf(files));
}

/**
 * The first backend is always needed; another one if a file, or a module of `test` that it imports, names it in its
 * path or its text, as `metalContext` does.
 */
function needOf(files: readonly string[]): (name: Dylib) => boolean {
  const imports = Map.groupBy(importsUnder(join(packageRoot, "test"), packageRoot), ({ from }) => from);
  const reached = new Set(files);
  for (const file of reached) for (const { to } of imports.get(file) ?? []) if (to.startsWith("test/")) reached.add(to);
  const found = [...reached].filter((file) => existsSync(join(packageRoot, file)));
  const texts = found.map((file) => `${file}\n${readFileSync(join(packageRoot, file), "utf8")}`);
  return (name) => name === getBackend() || texts.some((text) => new RegExp(`\\b${name}`).test(text));
}
