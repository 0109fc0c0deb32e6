/**
 * Parts of the library that the package loads on first use. They are more than half of it. They are in two more
 * bundles, so that programs that need only tensors start sooner. In the first bundle, `nn` is an object whose members
 * load another one, and `compile` is a function that does.
 */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { BunPlugin } from "bun";
import { imported } from "./compact.ts";
import { constantsIn, isWord, modulesOf, type SharedModule, type UsedNames } from "./share.ts";

/** The names of the later bundles, in the order of their imports, and the namespaces in each. */
const laterBundles = {
  numerics: ["distributed", "fft", "linalg", "metrics", "optim", "signal", "transforms"],
  namespaces: ["data", "diffusion", "distributions", "io", "nn", "text"],
} as const satisfies Readonly<Record<string, readonly string[]>>;
export type LaterBundle = keyof typeof laterBundles;
export const laterBundleNames = Object.keys(laterBundles) as readonly LaterBundle[];

const bundleOf = (name: string): LaterBundle | undefined =>
  laterBundleNames.find((bundle) => (laterBundles[bundle] as readonly string[]).includes(name));

/** A namespace or function of a later bundle. */
export interface Postponed {
  readonly name: string;
  /** Its module in `src`, such as `./nn/index.js`. */
  readonly from: string;
  readonly bundle: LaterBundle;
  readonly isFunction: boolean;
}

/**
 * Removes the exports of the namespaces and of functions of `src/compile` from the library's entry, and the check of
 * the namespaces' methods.
 */
export async function postpone(source: string, main: string): Promise<readonly Postponed[]> {
  const path = join(source, main);
  const found: Postponed[] = [];
  const text = (await Bun.file(path).text())
    .replace(/^export \* as (\w+) from "(.*)";\n/gm, (line, name: string, from: string) => {
      const bundle = bundleOf(name);
      if (bundle === undefined) return line;
      found.push({ name, from, bundle, isFunction: false });
      return "";
    })
    .replace(/^export \{ ([a-z]\w*) \} from "(\.\/compile\/.*)";\n/gm, (_, name: string, from: string) => {
      found.push({ name, from, bundle: "numerics", isFunction: true });
      return "";
    })
    .replace(/^import "\.\/checked_namespaces\.js";\n/m, "");
  if (found.length > 0) await Bun.write(path, text);
  return found;
}

/** Returns the entry of a later bundle. @param shared the modules of this bundle that others load */
export const postponedEntry = (
  bundle: LaterBundle,
  postponed: readonly Postponed[],
  shared: readonly SharedModule[],
): string => {
  const found = postponed.filter((each) => each.bundle === bundle);
  return [
    bundle === laterBundleNames.at(-1) ? 'import "../checked_namespaces.js";\n' : "",
    ...found.map(
      ({ name, from, isFunction }) => `import ${isFunction ? `{ ${name} }` : `* as ${name}`} from ".${from}";\n`,
    ),
    ...shared.map(({ path }, at) => `import * as m${at} from "../${path}";\n`),
    `export const namespaces = {\n${found.map(({ name }) => `  ${name},\n`).join("")}  $modules: {\n`,
    ...shared.map(({ path }, at) => `    ${JSON.stringify(path)}: m${at},\n`),
    "  },\n};\n",
  ].join("");
};

/** The statements that define `postponed` and `loaded`, with which the first bundle uses the later ones. */
export const postponingStatements = `import { loadPrimitivesBy } from "../backend/primitive.js";
const later = {};
const loaded = (bundle) => later[bundle] ??= later.load(bundle);
loadPrimitivesBy(() => void ${JSON.stringify(laterBundleNames)}.map(loaded));
function postponed(bundle, name, members) {
  const namespace = {};
  const fill = () => {
    for (const each of members) {
      const value = loaded(bundle)[name][each];
      Object.defineProperty(namespace, each, { value, enumerable: true });
    }
    return namespace;
  };
  for (const each of members)
    Object.defineProperty(namespace, each, { get: () => fill()[each], enumerable: true, configurable: true });
  return namespace;
}
`;

/** Returns the modules of earlier bundles that modules of a later one import. */
export async function modulesBelow(
  source: string,
  earlier: ReadonlySet<string>,
  later: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const below = new Set<string>();
  for (const path of later.size > 0 ? [...later, "checked_namespaces.js"] : [])
    for (const [, target] of (await Bun.file(join(source, path)).text()).matchAll(imported)) {
      const next = join(dirname(path), target);
      if (earlier.has(next)) below.add(next);
    }
  return below;
}

/** The modules of a draft of a later bundle that the earlier ones lack. */
export const modulesBeyond = (draft: string, earlier: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...modulesOf(draft)].filter((path) => !earlier.has(path) && !path.startsWith(standIns)));

/** The folder of stand-ins for modules of earlier bundles. The later ones are built with them. */
const standIns = "bundle/first/";

/** Resolves imports of modules of earlier bundles to their stand-ins. */
export const takingFrom = (source: string, earlier: ReadonlySet<string>, used: UsedNames): BunPlugin => ({
  name: "taking modules from earlier bundles",
  setup(builder) {
    builder.onResolve({ filter: /^\.\.?\// }, async ({ path, importer }) => {
      const module = relative(source, join(dirname(importer), path));
      if (module.endsWith("bundle/chosen.js")) return { path: "./chosen.js", external: true };
      if (!earlier.has(module)) return undefined;
      const standIn = join(source, standIns, module);
      if (!existsSync(standIn)) await writeWhole(standIn, membersOf(module, await constantsIn(source, module, used)));
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

/** Returns a module whose exports are members of an earlier bundle. Exported names may be keywords: `var`. */
function membersOf(path: string, exported: readonly string[]): string {
  const words = exported.filter((name) => isWord(name));
  const names = exported.map((name) => (words.includes(name) ? `${name}: $${name}` : name));
  const plain = exported.filter((name) => !words.includes(name));
  return `import { library } from "${relative(dirname(join(standIns, path)), "bundle")}/chosen.js";
const { ${names.join(", ")} } = library.$modules[${JSON.stringify(path)}]();
export { ${[...plain, ...words.map((name) => `$${name} as ${name}`)].join(", ")} };
`;
}
