import { dirname, join } from "node:path";
import packageFile from "../../package.json";

/** The declarations of the package's entries: `src/index.d.ts`. */
const entriesOfPackage = Object.values(packageFile.exports).flatMap((target) =>
  typeof target === "string" ? [] : join(target.types.replace(/\.ts$/, ".d.ts")),
);

/**
 * Removes declarations that compilers never read, because no chain of imports from the package's entries leads to them.
 *
 * @param folder has the package's `src`, compiled
 * @param entries the declarations of its entries
 */
export async function pruneDeclarations(folder: string, entries = entriesOfPackage): Promise<void> {
  const reached = new Set(entries);
  for (const path of reached) {
    const text = await Bun.file(join(folder, path)).text();
    for (const [, name] of text.matchAll(/(?:\bfrom |\bimport |\bimport\(|\bmodule )"(\.[^"\n]+)\.js"/g))
      reached.add(`${join(dirname(path), name)}.d.ts`);
  }
  for (const path of new Bun.Glob("src/**/*.d.ts").scanSync({ cwd: folder }))
    if (!reached.has(path)) await Bun.file(join(folder, path)).delete();
}
