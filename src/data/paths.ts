/** Resolves paths, folders and globs to files. */
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { DataError } from "../core/errors.ts";
import { packageRoot } from "../core/paths.ts";
import { nearestName } from "../core/suggestion.ts";
import { withFileErrors } from "../io/file_errors.ts";

/** A file that was found. */
export interface FoundFile {
  readonly path: string;
  readonly byteLength: number;
  readonly modified: number;
}

/**
 * Finds the files of paths, each once, sorted by name. A path is a file, a glob, or a folder, which is read
 * recursively, skipping names that begin with a dot. Links are followed.
 *
 * @throws {DataError} `notFound`, with the most similar existing name.
 */
export function findFiles(operation: string, paths: readonly string[]): FoundFile[] {
  const found = new Map<string, string>();
  for (const path of paths)
    withFileErrors(operation, path, () => {
      for (const file of filesOf(operation, resolve(path))) found.set(realpathSync(file), file);
    });
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
  throw new DataError(operation, "notFound", `no file in ${base} matches ${pattern}`);
}

/** Splits a path before its first component with a wildcard. The pattern is empty if there is none. */
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
  return new DataError(operation, "notFound", `${path} does not exist; ${hint}`);
}

/** All files in a folder, recursively. A folder that several links point to is visited once. */
function* walk(folder: string, visited = new Set<string>()): Generator<string> {
  const real = realpathSync(folder);
  if (visited.has(real)) return;
  visited.add(real);
  for (const name of readdirSync(folder).sort()) {
    if (name.startsWith(".")) continue;
    const path = join(folder, name);
    const kind = statSync(path, { throwIfNoEntry: false }); // undefined for a dangling link
    if (kind?.isDirectory()) yield* walk(path, visited);
    else if (kind?.isFile()) yield path;
  }
}

/**
 * Returns TypeScript's declaration files in the nearest `node_modules` at or above a folder, or else in this package's.
 */
export function findDeclarations(operation: string, start: string): { folder: string; files: FoundFile[] } {
  const folder = nearestModules(start) ?? nearestModules(packageRoot);
  if (folder === undefined)
    throw new DataError(
      operation,
      "notFound",
      `no data was named, and there is no node_modules in or above ${start}; name a file, a folder or a glob`,
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
