/**
 * Makes compiled modules smaller: without comments, and with one space for each level of indentation. Sources and
 * declarations keep their comments and indentation.
 */
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";

/** The spaces of tsc's indentation. */
const INDENT = 4;
/** Comments that tools read. */
const KEPT = /@license|@preserve|[#@]__PURE__|sourceMappingURL/;

interface Range {
  readonly start: number;
  readonly end: number;
}

/** @param folder has the package's `src`, compiled */
export async function compactModules(folder: string): Promise<void> {
  const source = join(folder, "src");
  for (const module of new Bun.Glob("**/*.js").scanSync({ cwd: source })) {
    const path = join(source, module);
    await Bun.write(path, compacted(await Bun.file(path).text(), module));
  }
}

/**
 * Returns a module without comments and lines that had only comments. String literals and templates are not changed.
 */
export function compacted(text: string, name = "module.js"): string {
  const { comments, program } = parseSync(name, text);
  const templates = templatesIn(program);
  const isText = (at: number): boolean => templates.some(({ start, end }) => start < at && at < end);
  const isHashbang = (start: number): boolean => start === 0 && text.startsWith("#!");
  const removed = comments.filter(({ value, start }) => !KEPT.test(value) && !isHashbang(start));
  const lines: string[] = [];
  let [start, next] = [0, 0];
  for (const line of text.split("\n")) {
    const end = start + line.length;
    while (next < removed.length && removed[next].end <= start) next++;
    const code = isText(start) ? line : indented(without(line, start, removed.slice(next)));
    if (code !== "" || line === "") lines.push(code);
    start = end + 1;
  }
  return lines.join("\n");
}

/** Returns the parts of a line outside of the ranges. The first range ends after the line's start. */
function without(line: string, start: number, removed: readonly Range[]): string {
  const end = start + line.length;
  let [kept, at] = ["", start];
  for (const range of removed) {
    if (range.start > end) break;
    kept += line.slice(at - start, Math.max(range.start, at) - start);
    at = Math.min(Math.max(range.end, at), end);
  }
  return (kept + line.slice(at - start)).trimEnd();
}

const indented = (line: string): string => {
  const spaces = line.length - line.trimStart().length;
  return " ".repeat(Math.ceil(spaces / INDENT)) + line.slice(spaces);
};

/** The literal parts of templates, which may have several lines. */
function templatesIn(node: unknown): Range[] {
  if (typeof node !== "object" || node === null) return [];
  if (Array.isArray(node)) return node.flatMap(templatesIn);
  const { type, start, end } = node as { type?: string } & Range;
  if (type === "TemplateElement") return [{ start: start - 1, end: end + 1 }];
  return Object.values(node).flatMap(templatesIn);
}

/** Entries that are no namespaces: modules next to the bundle, which load others at the first call. */
export const separateEntries: readonly string[] = ["serve", "train"];
/** Modules that are loaded by their paths, such as workers. */
const loadedByPath: RegExp = /(?:^|\/)\w+_main\.js$/;
/** Whether a module is loaded by itself: the command's, an entry's, or a worker's. */
export const isLoadedAlone = (path: string): boolean =>
  path === "cli/orchard.js" || separateEntries.some((name) => path === `${name}/index.js`) || loadedByPath.test(path);
/** Imports of other modules of the library. */
export const imported: RegExp = /(?:\bfrom |\bimport |\bimport\(|\brequire\()"(\.[^"\n]+)"/g;

/**
 * Removes the modules that only the bundle has: neither the command, nor a worker, a page or an entry of the package
 * loads them.
 *
 * @param folder has the package's `src`, bundled
 */
export async function removeUnused(folder: string): Promise<void> {
  const source = join(folder, "src");
  const texts = new Map<string, string>();
  for (const file of new Bun.Glob("**/*.{js,ts}").scanSync({ cwd: source }))
    if (!file.endsWith(".d.ts")) texts.set(file, await Bun.file(join(source, file)).text());
  const isRoot = (file: string): boolean =>
    file.endsWith(".ts") || /^(?:bundle\/|[^/]+\.js$)/.test(file) || isLoadedAlone(file);
  const used = new Set<string>();
  const waiting = [...texts.keys()].filter(isRoot);
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (used.has(file)) continue;
    used.add(file);
    const next = [...texts.get(file)!.matchAll(imported)].map(([, path]) => join(dirname(file), path));
    waiting.push(...next.filter((path) => texts.has(path)));
  }
  const isCopy = (file: string): boolean => file.startsWith("vendor/");
  for (const file of texts.keys()) if (!used.has(file) && !isCopy(file)) await rm(join(source, file));
}
