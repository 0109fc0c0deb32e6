/**
 * Bundles the packed library into one file, so that a program loads one file instead of 800: as an ECMAScript module,
 * and as bytecode for the Bun that packs. All entries of the package share one copy of the library.
 */
import { rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { decode, encode, type SourceMapSegment } from "@jridgewell/sourcemap-codec";
import type { BunPlugin } from "bun";
import packageFile from "../../package.json";
import { Failure } from "../failure.ts";
import { separateEntries } from "./compact.ts";
import { importingBunOnce, importingOnce } from "./once.ts";
import {
  type LaterBundle,
  laterBundleNames,
  modulesBelow,
  modulesBeyond,
  type Postponed,
  postpone,
  postponedEntry,
  postponingStatements,
  removeStandIns,
  takingFrom,
} from "./postpone.ts";
import {
  exportsIn,
  isWord,
  modulesOf,
  modulesOfStart,
  namesUsed,
  type SharedModule,
  sharedModules,
  type UsedNames,
} from "./share.ts";

/** The package's entries, by their names in `src`. The exports of the first are the library's. */
const [main, ...others] = ["index.js", "test.js"] as const;

/** A namespace of the library that is also an entry, such as `orchard-metal/nn`. */
interface Namespace {
  readonly name: string;
  /** The namespace's module in a clone, such as `./src/nn/index.ts`. */
  readonly path: string;
}

const namespacesOfPackage: readonly Namespace[] = Object.entries(packageFile.exports).flatMap(([key, target]) =>
  typeof target === "string" || [".", "./test", ...separateEntries.map((name) => `./${name}`)].includes(key)
    ? []
    : [{ name: key.slice("./".length), path: target.default }],
);

/**
 * Returns the module of an entry in the package. A namespace's module is next to the bundle: the modules in the
 * namespace's folder are gone.
 *
 * @param path the entry in a clone, such as `./src/nn/index.ts`
 */
export function packedModule(path: string): string {
  const namespace = namespacesOfPackage.find((each) => each.path === path);
  return namespace ? `./src/bundle/${namespace.name}.js` : path.replace(/\.ts$/, ".js");
}

/**
 * Packages that stay external. In modules of `"type": "module"`, Bun's bundler compiles their default imports to
 * CommonJS as in Node.js: the whole result of `require` is the default. Bun without a bundler uses the export `default`
 * if there is one. So the modules are bundled under a package.json without a type.
 */
const external = Object.keys({ ...packageFile.dependencies, ...packageFile.peerDependencies }).flatMap((name) => [
  name,
  `${name}/*`,
]);

/**
 * Modules that stay next to the bundle. One locates the library; one contains the `require` calls that bundlers follow;
 * one defines the classes of errors, which the command catches before it has loaded the library.
 */
const beside = ["core/place.js", "core/packaged.js", "core/errors.js"] as const;

const leavingBeside = (source: string): BunPlugin => ({
  name: "leaving files beside",
  setup(builder) {
    builder.onResolve({ filter: /(?:place|packaged|errors)\.js$/ }, ({ path, importer }) => {
      const file = beside.find((each) => join(source, each) === resolve(dirname(importer), path));
      return file === undefined ? undefined : { path: `../${file}`, external: true };
    });
    // Copies of packages that are loaded on first use.
    builder.onResolve({ filter: /\/vendor\/\w+\.js$/ }, ({ path, kind }) =>
      kind === "import-statement" ? undefined : { path: `../vendor/${basename(path)}`, external: true },
    );
  },
});

/**
 * Bundles a staged package. Its entries, the command and workers then import from the bundle: `src/bundle/library.js`,
 * and `src/bundle/bytecode.js` with its bytecode next to it. The bundle's modules are removed; source maps still name
 * them, with lines of the compiled text.
 *
 * @param folder has the package's `src`, compiled
 * @throws {Failure} if an entry needs something that the bundle lacks
 */
export async function bundleLibrary(folder: string, namespaces = namespacesOfPackage): Promise<void> {
  const source = join(folder, "src");
  const entry = join(source, "bundle", "entry.js");
  await nameExports(source, main, "core/errors.js");
  await listOperations(source, entry);
  const texts = await Promise.all(others.map(async (name) => [name, await textOf(source, name)] as const));
  const imports = texts.flatMap(([, text]) => importsOf(text));
  await Bun.write(entry, entryOf(imports));
  const ofNoType = join(source, "package.json");
  await Bun.write(ofNoType, "{}\n");
  const postponed = await postpone(source, main);
  const draft = await (await build(entry, { naming: "library.js" })).text();
  const exported = new Bun.Transpiler({ loader: "js" }).scan(draft).exports.filter((name) => !name.startsWith("$"));
  const first = modulesOf(draft);
  const membersOf = new Map<string, string[]>();
  for (const namespace of namespaces) membersOf.set(namespace.name, await namesIn(entry, namespace));

  const used = await namesUsed(source);
  const { all: bundled, later, below } = await bundledLater({ source, entry, used }, postponed, first);
  const shared = await sharedModules(source, bundled, below, used);
  const text = objectEntryOf({ exported, imports, shared, later, postponed, membersOf });
  await buildBoth(entry, text, "library", "bytecode", draft, []);
  for (const { name, modules, earlier } of later) {
    const ofLater = postponedEntry(
      name,
      postponed,
      shared.filter(({ path }) => modules.has(path)),
    );
    await buildBoth(entry, ofLater, name, `${name}_bytecode`, "", [takingFrom(source, earlier, used)]);
  }
  if (postponed.length > 0) await removeStandIns(source);
  await Promise.all([rm(entry), rm(ofNoType)]);
  await share(source, bundled, shared);
  const runtime = await textOf(source, "core/runtime.js");
  await Bun.write(join(source, "bundle", "chosen.js"), chooser(runtime, postponed.length > 0));
  for (const [name, text] of texts) await Bun.write(join(source, name), ofLibrary(name, text));
  const names = [...exported, ...postponed.map(({ name }) => name)];
  await Bun.write(join(source, main), libraryEntry("./bundle/chosen.js", "library", names));
  for (const [name, members] of membersOf)
    await Bun.write(join(source, "bundle", `${name}.js`), libraryEntry("./chosen.js", `library.${name}`, members));
  for (const path of [main, "core/errors.js", "core/place.js"]) await markTranspiled(join(source, path));
}

/** Marks a module without `require` as JavaScript that Bun need not transpile at each start. */
async function markTranspiled(path: string): Promise<void> {
  if (await Bun.file(path).exists()) await Bun.write(path, `// @bun\n${await Bun.file(path).text()}`);
}

/** A bundle that the package loads on first use. */
interface Later {
  readonly name: LaterBundle;
  readonly modules: ReadonlySet<string>;
  /** The modules of the bundles before it. */
  readonly earlier: ReadonlySet<string>;
}

/**
 * Returns the later bundles, the modules of all bundles, and those that a later bundle takes from an earlier one.
 *
 * @param entry the file to write and build for this
 */
async function bundledLater(
  { source, entry, used }: { readonly source: string; readonly entry: string; readonly used: UsedNames },
  postponed: readonly Postponed[],
  first: ReadonlySet<string>,
): Promise<{ all: ReadonlySet<string>; later: readonly Later[]; below: ReadonlySet<string> }> {
  const later: Later[] = [];
  const below = new Set<string>();
  let all = first;
  for (const name of postponed.length > 0 ? laterBundleNames : []) {
    await Bun.write(entry, postponedEntry(name, postponed, []));
    const plugins = [takingFrom(source, all, used)];
    const modules = modulesBeyond(await (await build(entry, { naming: `${name}.js`, plugins })).text(), all);
    for (const each of await modulesBelow(source, all, modules)) below.add(each);
    later.push({ name, modules, earlier: all });
    all = new Set([...all, ...modules]);
  }
  return { all, later, below };
}

/** Builds an entry as a module and as bytecode. @param draft a bundle whose renamed names are kept too */
async function buildBoth(
  entry: string,
  text: string,
  name: string,
  bytecodeName: string,
  draft: string,
  plugins: readonly BunPlugin[],
): Promise<void> {
  await Bun.write(entry, text);
  const built = await (await build(entry, { naming: `${name}.js`, plugins })).text();
  const names = new Set([...renamedIn(draft), ...renamedIn(built)]);
  await build(entry, { naming: `${name}.js`, isWritten: true, names, plugins });
  await build(entry, { naming: `${bytecodeName}.js`, isWritten: true, isBytecode: true, names, plugins });
}

/**
 * Replaces `export * from` a module next to the bundle by a list of names, because the bundler loses the exports of an
 * external module.
 */
async function nameExports(source: string, module: string, from: string): Promise<void> {
  const file = Bun.file(join(source, module));
  if (!(await file.exists()) || !(await Bun.file(join(source, from)).exists())) return;
  const names = (await exportsIn(source, from)).join(", ");
  await Bun.write(
    file,
    (await file.text()).replace(`export * from "./${from}"`, `export { ${names} } from "./${from}"`),
  );
}

/**
 * Replaces the namespace of all operations, of which methods are made, by an object of them. The bundler would make a
 * getter for each, and reading all of them takes a millisecond at each start.
 */
async function listOperations(source: string, entry: string): Promise<void> {
  const path = join("ops", "methods.js");
  if (!(await Bun.file(join(source, path)).exists())) return;
  const operations = await namesIn(entry, { name: "ops", path: "./src/ops/index.ts" });
  const imports = operations.map((name) => `${name} as own$${name}`).join(", ");
  const members = operations.map((name) => `${name}: own$${name}`).join(", ");
  await Bun.write(
    join(source, path),
    (await textOf(source, path)).replace(
      /^import \* as operations from "(.*)";$/m,
      (_, from: string) => `import { ${imports} } from "${from}";\nconst operations = { ${members} };`,
    ),
  );
}

/**
 * Removes the bundled modules, and rewrites those that the command and workers import. Modules that the command needs
 * to start are not changed, so that `--help` does not load the library.
 */
async function share(source: string, bundled: ReadonlySet<string>, shared: readonly SharedModule[]): Promise<void> {
  const starting = await modulesOfStart(source);
  for (const path of bundled) if (!starting.has(path)) await rm(join(source, path), { force: true });
  for (const { path, exports } of shared) {
    if (starting.has(path)) continue;
    const chosen = `${"../".repeat(path.split("/").length - 1) || "./"}bundle/chosen.js`;
    await Bun.write(join(source, path), libraryEntry(chosen, `library.$modules[${JSON.stringify(path)}]()`, exports));
  }
}

/** Returns the names that a namespace exports. @param entry the file to write and build for this */
async function namesIn(entry: string, { name, path }: Namespace): Promise<string[]> {
  await Bun.write(entry, `export * from "${path.replace("./src/", "../").replace(/\.ts$/, ".js")}";\n`);
  const text = await (await build(entry, { naming: `${name}.js` })).text();
  return new Bun.Transpiler({ loader: "js" }).scan(text).exports;
}

const textOf = (source: string, name: string): Promise<string> => Bun.file(join(source, name)).text();

interface Build {
  readonly naming: string;
  readonly isWritten?: boolean;
  readonly isBytecode?: boolean;
  /** See {@link renamedIn}. */
  readonly names?: ReadonlySet<string>;
  readonly plugins?: readonly BunPlugin[];
}

async function build(entry: string, { naming, isWritten, isBytecode, names = new Set(), plugins = [] }: Build) {
  const source = join(entry, "..", "..");
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: "bun",
    external,
    naming,
    plugins: [
      ...(isBytecode ? [importingOnce(source)] : []),
      leavingBeside(source),
      ...plugins,
      keepingNames(names, isBytecode ? source : undefined),
    ],
    // If white space is not minified, a bundle has comments with the path of each module, relative to the working
    // folder.
    ...(isWritten
      ? { outdir: join(entry, ".."), sourcemap: "linked", minify: { whitespace: true, syntax: true } }
      : {}),
    ...(isBytecode ? { format: "cjs", bytecode: true } : {}),
  });
  const map = outputs.find(({ kind }) => kind === "sourcemap");
  if (map) await shortened(map.path);
  const output = outputs.find(({ kind }) => kind === "entry-point")!;
  if (isWritten && !isBytecode) await Bun.write(output.path, requiring(await output.text()));
  return output;
}

/**
 * Bundlers include modules that are required by this name, which the bundler has renamed. An ECMAScript module has no
 * `require` unless Bun transpiles it, which the bundler's first line disables; the line is kept for the source map.
 */
const requiring = (text: string): string =>
  text.replaceAll("__require(", "require(").replace(/^\/\/ @bun\n/, "// The library, for every engine.\n");

/**
 * Makes a source map a quarter as large: it keeps only the first position of each line, which a stack shows, and no
 * contents, since the sources are next to the bundle.
 */
async function shortened(path: string): Promise<void> {
  const map = (await Bun.file(path).json()) as { readonly sources: readonly string[]; readonly mappings: string };
  const lines = decode(map.mappings).map((segments) =>
    segments
      .filter((segment, at) => {
        const before = segments[at - 1];
        return before === undefined || before[1] !== segment[1] || before[2] !== segment[2];
      })
      .map((segment) => segment.slice(0, 4) as SourceMapSegment),
  );
  const sourcesContent = map.sources.map(() => null); // Bun ignores a map without them
  await Bun.write(path, JSON.stringify({ ...map, names: [], sourcesContent, mappings: encode(lines) }));
}

/** An import from another module of the library: `import { a, b } from "./c.js";`. */
const relativeImport = /^import (?:\{ ([\w, ]+) \} from )?"(\.\/[^"]+)";\n/gm;

interface RelativeImport {
  readonly names: readonly string[];
  readonly from: string;
}

const importsOf = (text: string): RelativeImport[] =>
  [...text.matchAll(relativeImport)].map(([, names = "", from]) => ({
    names: names.split(", ").filter(Boolean),
    from: from,
  }));

/**
 * Returns the exports of the bundle: the library, and the members of its modules that other entries need, under names
 * with a dollar sign.
 */
const entryOf = (imports: readonly RelativeImport[]): string =>
  [
    `export * from "../${main}";\n`,
    ...imports.flatMap(({ names, from }) => names.map((name) => `export { ${name} as $${name} } from ".${from}";\n`)),
  ].join("");

interface Contents {
  readonly exported: readonly string[];
  readonly imports: readonly RelativeImport[];
  /** Modules that the command or another bundle loads. */
  readonly shared: readonly SharedModule[];
  readonly later: readonly Later[];
  readonly postponed: readonly Postponed[];
  /** The names that each namespace exports. */
  readonly membersOf: ReadonlyMap<string, readonly string[]>;
}

/**
 * Writes the bundle's exports as one object, with functions that load the modules that the command also uses. Bun's
 * bundler would make a getter and a setter for each export, which takes a millisecond at each start.
 */
function objectEntryOf({ exported, imports, shared, later, postponed, membersOf }: Contents): string {
  const others = imports.flatMap(({ names, from }) => names.map((name) => [name, from] as const));
  const ofFirst = shared.filter(({ path }) => !later.some(({ modules }) => modules.has(path)));
  const members = (name: string) => JSON.stringify([...membersOf.get(name)!].sort());
  return [
    `import { ${exported.map((name) => `${name} as own$${name}`).join(", ")} } from "../${main}";\n`,
    ...ofFirst.flatMap(({ path, exports, isEager }, at) =>
      isEager
        ? [`import { ${exports.map((name) => `${name} as m${at}$${name}`).join(", ")} } from "../${path}";\n`]
        : [],
    ),
    ...others.map(([name, from]) => `import { ${name} as $${name} } from ".${from}";\n`),
    postponed.length > 0 ? postponingStatements : "",
    `export const library = {\n${exported.map((name) => `  ${name}: own$${name},\n`).join("")}`,
    ...postponed.map(({ name, bundle, isFunction }) =>
      isFunction
        ? `  ${name}(...values) {\n    return loaded("${bundle}").${name}(...values);\n  },\n`
        : `  ${name}: postponed("${bundle}", "${name}", ${members(name)}),\n`,
    ),
    ...new Set(others.map(([name]) => `  $${name},\n`)),
    postponed.length > 0 ? "  $later: later,\n" : "",
    "  $modules: {\n",
    ...ofFirst.map(memberOf),
    ...later.flatMap(({ name, modules }) =>
      shared
        .filter(({ path }) => modules.has(path))
        .map(({ path }) => `    "${path}": () => loaded("${name}").$modules["${path}"],\n`),
    ),
    "  },\n};\n",
  ].join("");
}

/**
 * Returns the member of a shared module. A `require` makes the bundler load a module on first use, which costs time in
 * each call, so modules that are loaded at once have references.
 */
function memberOf({ path, exports, isEager }: SharedModule, at: number): string {
  const names = exports.map((name) => `${name}: m${at}$${name}`).join(", ");
  return `    ${JSON.stringify(path)}: () => ${isEager ? `({ ${names} })` : `require("../${path}")`},\n`;
}

/** Returns an entry that imports from the bundle. @throws {Failure} for an unsupported form of import */
function ofLibrary(name: string, text: string): string {
  const code = text.replace(relativeImport, (_, names = "") =>
    names === "" ? "" : `const { ${names.replace(/\w+/g, "$$$&: $&")} } = library;\n`,
  );
  if (/^(?:import|export)\b[^;]*"\./m.test(code)) throw new Failure(`${name} has an import that packing can't parse`);
  return `import { library } from "./bundle/chosen.js";\n${code}`;
}

/**
 * Returns an entry that exports members of the library, or of one of its namespaces. Exported names may be keywords:
 * `var`.
 */
function libraryEntry(chosen: string, object: string, exported: readonly string[]): string {
  const names = [...exported].sort();
  const plain = names.filter((name) => !isWord(name)).map((name) => ` ${name},\n`);
  const words = names
    .filter(isWord)
    .map((name) => `const $${name} = ${object}.${name};\nexport { $${name} as ${name} };\n`);
  return `import { library } from "${chosen}";\nexport const {\n${plain.join("")}} = ${object};\n${words.join("")}`;
}

/**
 * Bytecode requires the same engine and system; elsewhere the library's text is loaded. An engine that can load neither
 * gets an error first. The path of the bytecode is concatenated, so that no bundler includes it, and it does not exist
 * next to a user's bundle.
 *
 * @param runtime the text of `src/core/runtime.ts`, compiled, so that an import loads no module for it
 */
export const chooser = (runtime: string, isPostponing = false): string => `${runtime.replaceAll(/^export /gm, "")}
checkRuntime();
const path = import.meta.dir + "/bytecode.js";
const isEngine = process.versions.webkit === "${process.versions["webkit"]}";
const isOurs = isEngine && process.platform === "${process.platform}" && require("node:fs").existsSync(path);
export const { library } = isOurs ? require(path) : require("./library.js");
${isPostponing ? loader : ""}`;

/** Loads later bundles in the form of the first. Bundlers follow calls of `require` with a text. */
const loader = `const texts = {
${laterBundleNames.map((name) => `  ${name}: () => require("./${name}.js"),\n`).join("")}};
library.$later.load = (name) =>
  (isOurs ? require(import.meta.dir + "/" + name + "_bytecode.js") : texts[name]()).namespaces;
`;

/**
 * Returns the names of classes and exported functions that the bundler renamed, such as `all2`, because two modules or
 * the language use the same name. Programs can read these names: models are printed with the names of their classes.
 */
function renamedIn(bundle: string): ReadonlySet<string> {
  const declared = [...bundle.matchAll(/^(?:var \w+ = )?class (\w+?)\d+ /gm)].map(([, name]) => name);
  const exported = [...bundle.matchAll(/\b(\w+)\d+ as \1\b|\b(\w+): \(\) => \2\d+\b/g)].map(
    ([, one, two]) => one ?? two,
  );
  return new Set([...declared, ...exported]);
}

/**
 * Restores the names of functions and classes, for which the bundler may rename the variables.
 *
 * @param once the folder of the sources, if they import modules of Bun by {@link importingOnce}. No plugin can resolve
 *   those, and only one can load a module.
 */
const keepingNames = (names: ReadonlySet<string>, once: string | undefined): BunPlugin => ({
  name: "keeping names",
  setup(builder) {
    if (names.size === 0) return;
    const declaration = new RegExp(
      `^(?:export )?(?:async )?(?:class|function\\*?|const) (${[...names].join("|")})\\b`,
      "gm",
    );
    builder.onLoad({ filter: /\/src\/.*\.js$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      const declaredNames = [...new Set([...text.matchAll(declaration)].map(([, name]) => name))];
      const lines = declaredNames.map(
        (name) => `\nif (${name}.name) Object.defineProperty(${name}, "name", { value: "${name}" });`,
      );
      const own = once === undefined ? text : importingBunOnce(once, text);
      return { contents: `${own}${lines.join("")}`, loader: "js" };
    });
  },
});
