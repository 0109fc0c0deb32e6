/**
 * Finds which files import which, with oxc's parser: dependency-cruiser (18.7) and madge (8.0) read TypeScript with its
 * JavaScript API, which version 7 lacks so far, and swc, dependency-cruiser's other parser, does not support `using`.
 */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { parseSync } from "oxc-parser";

/** An import of one file by another, both relative to the root folder. */
export interface Import {
  readonly from: string;
  readonly to: string;
  /** Whether the import is of a value, so that `to` runs before `from`. Types and `import()` do not. */
  readonly runsFirst: boolean;
}

/**
 * The imports among the TypeScript files under a folder, with paths from `root`.
 *
 * @throws {Error} for a file that does not parse
 */
export function importsUnder(folder: string, root: string = folder): Import[] {
  const files = [...new Bun.Glob("**/*.ts").scanSync({ cwd: folder })].sort().map((file) => join(folder, file));
  return files.flatMap((file) =>
    importsOf(file)
      .filter(({ path }) => path.startsWith(".") && path.endsWith(".ts"))
      .map(({ path, runsFirst }) => ({
        from: relative(root, file),
        to: relative(root, join(dirname(file), path)),
        runsFirst,
      })),
  );
}

interface Specifier {
  readonly path: string;
  readonly runsFirst: boolean;
}

function importsOf(file: string): Specifier[] {
  const source = readFileSync(file, "utf8");
  const { module, errors } = parseSync(file, source);
  if (errors[0]) throw new Error(`${file} does not parse: ${errors[0].message}`);
  const imports = module.staticImports.map(({ moduleRequest, entries }) => ({
    path: moduleRequest.value,
    runsFirst: entries.length === 0 || entries.some(({ isType }) => !isType),
  }));
  const exports = module.staticExports
    .flatMap(({ entries }) => entries)
    .flatMap(({ moduleRequest, isType }) => (moduleRequest ? [{ path: moduleRequest.value, runsFirst: !isType }] : []));
  const dynamic = module.dynamicImports.map(({ moduleRequest: { start, end } }) => ({
    path: source.slice(start + 1, end - 1),
    runsFirst: false,
  }));
  return [...imports, ...exports, ...dynamic];
}
