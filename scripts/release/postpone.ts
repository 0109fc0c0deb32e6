/**
 * Namespaces that the package loads on first use. They are half of the library. They are in a second bundle, so that
 * programs that need only tensors start sooner. In the first bundle, `nn` is an object whose members load the second
 * one.
 */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { BunPlugin } from "bun";
import { imported } from "./compact.ts";
import { constantsIn, modulesOf, type SharedModule } from "./share.ts";

/** Large namespaces. They define no primitives, since overrides look up primitives by name before any call. */
const postponedNames: readonly string[] = ["data", "diffusion", "distributed", "distributions", "io", "nn", "text"];

/** A namespace of the second bundle. */
export interface Postponed {
  readonly name: string;
  /** The namespace's module in `src`, such as `./nn/index.js`. */
  readonly from: string;
}

/**
 * Removes the exports of the namespaces from the library's entry, and the check of their methods. Modules that define
 * primitives are added, since overrides find all primitives by their names.
 */
export async function postpone(source: string, main: string): Promise<readonly Postponed[]> {
  const path = join(source, main);
  const found: Postponed[] = [];
  const text = (await Bun.file(path).text())
    .replace(/^export \* as (\w+) from "(.*)";\n/gm, (line, name: string, from: string) => {
      if (!postponedNames.includes(name)) return line;
      found.push({ name, from });
      return "";
    })
    .replace(/^import "\.\/checked_namespaces\.js";\n/m, "");
  if (found.length > 0) await Bun.write(path, text + (await definitionsIn(source)));
  return found;
}

/** Imports the modules that define primitives. */
async function definitionsIn(source: string): Promise<string> {
  const imports: string[] = [];
  for (const module of [...new Bun.Glob("**/*.js").scanSync({ cwd: source })].sort())
    if (/^(?:export )?const .*\bdefinePrimitive\(/m.test(await Bun.file(join(source, module)).text()))
      imports.push(`import "./${module}";\n`);
  return imports.join("");
}

/** Returns the entry of the second bundle. @param shared the modules of this bundle that the command loads */
export const postponedEntry = (found: readonly Postponed[], shared: readonly SharedModule[]): string =>
  [
    'import "../checked_namespaces.js";\n',
    ...found.map(({ name, from }) => `import * as ${name} from ".${from}";\n`),
    ...shared.map(({ path }, at) => `import * as m${at} from "../${path}";\n`),
    `export const namespaces = {\n${found.map(({ name }) => `  ${name},\n`).join("")}  $modules: {\n`,
    ...shared.map(({ path }, at) => `    ${JSON.stringify(path)}: m${at},\n`),
    "  },\n};\n",
  ].join("");

/** The statements that define `postponed` and `loaded`, with which the first bundle uses members of the second. */
export const postponingStatements = `const later = {};
const loaded = () => later.namespaces ??= later.load();
function postponed(name, members) {
  const namespace = {};
  const fill = () => {
    for (const each of members) {
      const value = loaded()[name][each];
      Object.defineProperty(namespace, each, { value, enumerable: true });
    }
    return namespace;
  };
  for (const each of members)
    Object.defineProperty(namespace, each, { get: () => fill()[each], enumerable: true, configurable: true });
  return namespace;
}
`;

/** Returns the modules of the first bundle that modules of the second import. */
export async function modulesBelow(
  source: string,
  first: ReadonlySet<string>,
  second: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const below = new Set<string>();
  for (const path of second.size > 0 ? [...second, "checked_namespaces.js"] : [])
    for (const [, target] of (await Bun.file(join(source, path)).text()).matchAll(imported)) {
      const next = join(dirname(path), target);
      if (first.has(next)) below.add(next);
    }
  return below;
}

/** The modules of a draft of the second bundle that the first one lacks. */
export const modulesBeyond = (draft: string, first: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...modulesOf(draft)].filter((path) => !first.has(path) && !path.startsWith(standIns)));

/** The folder of stand-ins for modules of the first bundle. The second bundle is built with them. */
const standIns = "bundle/first/";

/** Resolves imports of modules of the first bundle to their stand-ins. */
export const takingFrom = (source: string, first: ReadonlySet<string>): BunPlugin => ({
  name: "taking modules from the first bundle",
  setup(builder) {
    builder.onResolve({ filter: /^\.\.?\// }, async ({ path, importer }) => {
      const module = relative(source, join(dirname(importer), path));
      if (module.endsWith("bundle/chosen.js")) return { path: "./chosen.js", external: true };
      if (!first.has(module)) return undefined;
      const standIn = join(source, standIns, module);
      if (!existsSync(standIn)) await writeWhole(standIn, membersOf(module, await constantsIn(source, module)));
      return { path: standIn };
    });
  },
});

/** Writes a file atomically: modules are resolved in parallel, and read as soon as they exist. */
async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}`;
  await Bun.write(temporary, text);
  await rename(temporary, path);
}

export const removeStandIns = (source: string): Promise<void> => rm(join(source, standIns), { recursive: true });

/** Returns a module whose exports are members of the first bundle. */
function membersOf(path: string, exported: readonly string[]): string {
  const names = (form: (name: string) => string) => exported.map(form).join(", ");
  return `import { library } from "${relative(dirname(join(standIns, path)), "bundle")}/chosen.js";
const { ${names((name) => `${name}: $${name}`)} } = library.$modules[${JSON.stringify(path)}]();
export { ${names((name) => `$${name} as ${name}`)} };
`;
}
