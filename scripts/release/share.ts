/**
 * The modules of the bundle that the command and workers load. In the package, they are short modules that re-export
 * from the bundle, so that the library is loaded once and each class exists once.
 */
import { dirname, join } from "node:path";
import { Failure } from "../failure.ts";
import { imported, isLoadedAlone } from "./compact.ts";

const programModule = "cli/program.js";

/** A module of the bundle, by its path in `src`, with its exports. */
export interface SharedModule {
  readonly path: string;
  readonly exports: readonly string[];
  /** Whether the library loads the module immediately, rather than on first use. */
  readonly isEager: boolean;
}

/** Returns the paths of the modules in a draft of the bundle, from the comment before each. */
export const modulesOf = (draft: string): ReadonlySet<string> =>
  new Set([...draft.matchAll(/^\/\/ \S*?\bsrc\/(\S+\.js)$/gm)].map(([, path]) => path));

/**
 * Returns the bundled modules that the command and workers import, and those that another bundle imports.
 *
 * @param source the package's `src`, compiled
 * @param more the modules that the other bundle imports
 * @param used the names that modules import
 */
export async function sharedModules(
  source: string,
  bundled: ReadonlySet<string>,
  more: ReadonlySet<string>,
  used: UsedNames,
): Promise<SharedModule[]> {
  const all = [...new Bun.Glob("**/*.js").scanSync({ cwd: source })];
  const waiting = all.filter((path) => isLoadedAlone(path) && !bundled.has(path));
  const [seen, shared] = [new Set(waiting), new Set<string>()];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const text = await Bun.file(join(source, path)).text();
    for (const [, target] of text.matchAll(imported)) {
      const next = join(dirname(path), target);
      if (bundled.has(next)) shared.add(next);
      else if (!seen.has(next) && all.includes(next)) waiting.push(next);
      seen.add(next);
    }
  }
  const eager = await loadedWith(source, "index.js");
  const exportsOf = async (path: string) => {
    const exports = await (shared.has(path) ? exportsIn(source, path) : constantsIn(source, path, used));
    return { path, exports, isEager: eager.has(path) };
  };
  return Promise.all([...new Set([...shared, ...more])].sort().map(exportsOf));
}

const importedAtOnce = /^(?:import|export) (?:[^;\n"]*from )?"(\.[^"\n]+\.js)"/gm;

/** Returns the modules that the command loads to start. */
export const modulesOfStart = (source: string): Promise<ReadonlySet<string>> => loadedWith(source, programModule);

/** Returns a module and those that it imports, without calls of `import()`. */
export async function loadedWith(source: string, module: string): Promise<ReadonlySet<string>> {
  const waiting = [module];
  const found = new Set(waiting);
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = Bun.file(join(source, path));
    if (!(await file.exists())) continue;
    for (const [, target] of (await file.text()).matchAll(importedAtOnce)) {
      const next = join(dirname(path), target);
      if (!found.has(next)) waiting.push(next);
      found.add(next);
    }
  }
  return found;
}

/** Returns the names that a module exports, also those of `export * from`. */
export async function exportsIn(source: string, path: string): Promise<string[]> {
  const text = await Bun.file(join(source, path)).text();
  if (/^export let\b/m.test(text))
    throw new Failure(`${path} exports a variable; copies of the module would not see its changes`);
  return namesIn(source, path, text);
}

/**
 * Returns the names that a module exports and that others import, except variables: a bundle that imports an exported
 * variable does not build.
 */
export async function constantsIn(source: string, path: string, used: UsedNames): Promise<string[]> {
  const text = await Bun.file(join(source, path)).text();
  const variables = [...text.matchAll(/^export let (\w+)/gm)].map(([, name]) => name);
  const isUsed = (name: string) => used.get(path)?.has("*") || used.get(path)?.has(name);
  return (await namesIn(source, path, text)).filter((name) => !variables.includes(name) && isUsed(name));
}

/** The names that modules import from each module; `*` for all names. */
export type UsedNames = ReadonlyMap<string, ReadonlySet<string>>;

/** Returns the names that the library's modules import from each other. */
export async function namesUsed(source: string): Promise<UsedNames> {
  const found = new Map<string, Set<string>>();
  for (const module of new Bun.Glob("**/*.js").scanSync({ cwd: source })) {
    const text = await Bun.file(join(source, module)).text();
    for (const [, names = "*", target] of text.matchAll(importedNames)) {
      const path = join(dirname(module), target);
      const used = found.get(path) ?? new Set();
      found.set(path, used);
      for (const name of names.split(",")) used.add(name.trim().split(" as ")[0]);
    }
  }
  return found;
}

/** Imports and exports from another module, with the list of names if there is one. */
const importedNames =
  /(?:\b(?:import|export)\s*(?:\{([^}]*)\}\s*from\s*|[^;"{}]*\bfrom\s*|\(?\s*)|\brequire\()"(\.[^"\n]+\.js)"/g;

async function namesIn(source: string, path: string, text: string): Promise<string[]> {
  const stars = [...text.matchAll(/^export \* from "(\.[^"]+)";/gm)].map(([, target]) => join(dirname(path), target));
  const { exports } = new Bun.Transpiler({ loader: "js" }).scan(text);
  const more = await Promise.all(stars.map((target) => exportsIn(source, target)));
  return [...new Set([...exports, ...more.flat()])];
}

/** Whether a module can export a name but not declare it: a keyword, or the name of the bundle's object. */
export const isWord = (name: string): boolean => words.has(name);
const words: ReadonlySet<string> = new Set([
  ...["case", "class", "const", "delete", "do", "enum", "eval", "export", "for", "function", "if", "import", "in"],
  ...["let", "library", "new", "null", "switch", "this", "var", "void", "with"],
]);
