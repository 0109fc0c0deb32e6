/** For child processes of tests: takes the library's modules from the pack of `scripts/suite/modules.ts`. */
import { readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { plugin } from "bun";

const packageRoot = join(import.meta.dir, "..", "..");
const source = new RegExp(`^${RegExp.escape(join(packageRoot, "src") + sep)}.*\\.ts$`);

/** Loads packed modules, by their paths, instead of their sources. Modules that are not packed load as usual. */
export function takeFrom(modules: Readonly<Record<string, object>>): void {
  plugin({
    name: "packed modules",
    setup(build) {
      build.onLoad({ filter: source }, ({ path }) => {
        const exports = modules[relative(packageRoot, path)];
        if (exports) return { exports: { ...exports }, loader: "object" };
        return { contents: readFileSync(path, "utf8"), loader: "ts" };
      });
    },
  });
}
