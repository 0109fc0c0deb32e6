/** From what a user names to the files that are meant. */
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { DataError } from "../core/errors.ts";
import { packageRoot } from "../core/paths.ts";
import { nearestName } from "../core/suggestion.ts";
import { withFileErrors } from "../io/file_errors.ts";

/** One file, as it was found. */
export interface FoundFile {
  readonly path: string;
  readonly byteLength: number;
  readonly modified: number;
}

/**
 * The files of paths, each once, in the order of their names: a file; a folder, with all that is below it but for names that begin with a dot; or a
 * glob. Links are followed.
 *
 * @throws {DataError} `notFound`, with the nearest name that there is.
 */
export function findFiles(operation: string, paths: readonly string[]): FoundFile[] {
  const found = new Map<string, string>();
  for (const path of paths) for (const file of filesOf(operation, resolve(path))) found.set(realpathSync(file), file);
  return [...found.values()].sort().map(inspect);
}

function inspect(path: string): FoundFile {
  const { size, mtimeMs } = statSync(path);
  return { path, byteLength: size, modified: mtimeMs };
}

function filesOf(operation: string, path: string): string[] {
  const kind = statSync(path, { throwIfNoEntry: false });
  if (kind?.isDirectory()) return withFileErrors(operation, path, () => [...walk(path)]);
  if (kind) return [path];
  const { base, pattern } = splitGlob(path);
  if (pattern === "") throw notFound(operation, path);
  if (!existsSync(base)) throw notFound(operation, base);
  const glob = new Bun.Glob(pattern);
  const files = [...walk(base)].filter((file) => glob.match(relative(base, file)));
  if (files.length > 0) return files;
  throw new DataError(operation, "notFound", `no file below ${base} matches ${pattern}`);
}

/** The folder before the first part with a wildcard, and the rest; which is empty where there is none. */
function splitGlob(path: string): { base: string; pattern: string } {
  const parts = path.split(sep);
  const first = parts.findIndex((part) => /[*?[{]/.test(part));
  if (first < 0) return { base: path, pattern: "" };
  return { base: parts.slice(0, first).join(sep) || sep, pattern: parts.slice(first).join("/") };
}

function notFound(operation: string, path: string): DataError {
  const parent = dirname(path);
  if (!existsSync(parent)) return notFound(operation, parent);
  const near = nearestName(basename(path), readdirSync(parent));
  const hint = near === undefined ? "name a file, a folder or a glob" : `did you mean ${join(parent, near)}?`;
  return new DataError(operation, "notFound", `there is no ${path}; ${hint}`);
}

/** All files below a folder. A folder that several links lead to is entered once. */
function* walk(folder: string, entered = new Set<string>()): Generator<string> {
  const real = realpathSync(folder);
  if (entered.has(real)) return;
  entered.add(real);
  for (const name of readdirSync(folder).sort()) {
    if (name.startsWith(".")) continue;
    const path = join(folder, name);
    const kind = statSync(path, { throwIfNoEntry: false }); // a link may lead nowhere
    if (kind?.isDirectory()) yield* walk(path, entered);
    else if (kind?.isFile()) yield path;
  }
}

/** The declaration files of TypeScript below the `node_modules` that is nearest to a folder, or else has this package. */
export function findDeclarations(operation: string, start: string): { folder: string; files: FoundFile[] } {
  const folder = nearestModules(start) ?? nearestModules(packageRoot);
  if (folder === undefined)
    throw new DataError(
      operation,
      "notFound",
      `no data is named, and there is no node_modules in ${start} or above it, whose declaration files would serve; name a file, a folder or a glob`,
    );
  const files = findFiles(operation, [folder]).filter(({ path }) => path.endsWith(".d.ts"));
  return { folder, files };
}

function nearestModules(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const modules = basename(folder) === "node_modules" ? folder : join(folder, "node_modules");
    if (existsSync(modules)) return modules;
    if (folder === dirname(folder)) return undefined;
  }
}
