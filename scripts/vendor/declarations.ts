import { dirname, join } from "node:path";
import packageFile from "../../package.json";

/** The declarations of the package's entries: `src/index.d.ts`. */
const entriesOfPackage = Object.values(packageFile.exports).flatMap((target) =>
  typeof target === "string" ? [] : join(target.types.replace(/\.ts$/, ".d.ts")),
);

/** The compiler indents by four spaces. With tabs the package is 50 KB smaller. */
const withTabs = (text: string): string => text.replace(/^(?: {4})+/gm, (spaces) => "\t".repeat(spaces.length / 4));

/**
 * Removes declarations that compilers never read, because no chain of imports from the package's entries leads to them,
 * and indents the others with tabs.
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
    await Bun.write(join(folder, path), withTabs(text));
  }
  for (const path of new Bun.Glob("src/**/*.d.ts").scanSync({ cwd: folder }))
    if (!reached.has(path)) await Bun.file(join(folder, path)).delete();
}
