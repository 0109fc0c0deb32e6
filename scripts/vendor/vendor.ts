/**
 * Copies of packages within the published package: the parts of development dependencies that the sources import are
 * bundled into `src/vendor`, a file per import, with the licenses. Users install a few files instead of thirty
 * packages, because the library uses a small part of each.
 */
import { cp } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { parseSync } from "oxc-parser";
import subset from "subset-font";
import packageFile from "../../package.json";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";
import { licenseOf, licenseText, type VendoredPackage } from "./licenses.ts";

const { dependencies, devDependencies, peerDependencies } = packageFile;
const installed = new Set(Object.keys({ ...dependencies, ...peerDependencies }));

const packageOf = (specifier: string): string => specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");

/** Whether an import names a package that is copied. */
export const isVendored = (specifier: string): boolean =>
  Object.hasOwn(devDependencies, packageOf(specifier)) && !installed.has(packageOf(specifier));

/** Whether an import names a data file, such as a font. */
const isAsset = (specifier: string): boolean => /\.(?:css|ttf)$/.test(specifier);

/** Blocks of Unicode that a packaged font has: Latin, Greek, Cyrillic, punctuation, currencies, arrows, mathematics. */
const blocks = [
  [0x20, 0x7e],
  [0xa0, 0x24f],
  [0x370, 0x4ff],
  [0x2010, 0x209c],
  [0x20a0, 0x20bf],
  [0x2190, 0x2199],
  [0x2200, 0x22ff],
] as const;

/**
 * The characters of these blocks. A chart can have names in any script, but half of a font's bytes are for other
 * scripts. Alternative shapes of these characters, which a program would have to ask for, are left out (60 kB).
 */
const drawn = (): string =>
  blocks
    .flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => String.fromCodePoint(first + at)))
    .join("");

const shapes = { noLayoutClosure: true } as const;

/** The name of an import's file in `src/vendor`: `d3_scale.js`. */
export function vendoredFile(specifier: string): string {
  const name = specifier.replace(/^@/, "").replaceAll(/[^\w.]/g, "_");
  return isAsset(specifier) ? name : `${name}.js`;
}

/** The names that modules import from a package; all if one module loads it on first use. */
type Names = ReadonlySet<string> | "all";

/**
 * Bundles the packages that a staged package imports, and has its modules import the copies.
 *
 * @param folder has the package's `src`, compiled
 * @throws {Failure} if a package has no license that allows a copy, or a declaration names a copied package
 */
export async function vendorPackages(folder: string): Promise<void> {
  const source = join(folder, "src");
  const names = new Map<string, Names>();
  for (const module of [...new Bun.Glob("**/*.{js,ts}").scanSync({ cwd: source })].sort()) {
    const path = join(source, module);
    const text = await Bun.file(path).text();
    const copied = importingCopies(text, module);
    if (copied === text) continue;
    if (module.endsWith(".d.ts")) throw new Failure(`${module} imports types of a package that users do not install`);
    for (const [specifier, more] of namesIn(path, text)) names.set(specifier, union(names.get(specifier), more));
    await Bun.write(path, copied);
  }
  const copies = join(source, "vendor");
  const isProgram = ([specifier]: readonly [string, Names]) => !isAsset(specifier);
  const packages = await bundleCopies(copies, [...names].filter(isProgram));
  for (const specifier of [...names.keys()].filter(isAsset)) {
    const path = Bun.resolveSync(specifier, packageRoot);
    const copy = join(copies, vendoredFile(specifier));
    if (specifier.endsWith(".ttf"))
      await Bun.write(copy, await subset(Buffer.from(await Bun.file(path).bytes()), drawn(), shapes));
    else await cp(path, copy);
    packages.push(await licenseOf(path));
  }
  await Bun.write(join(copies, "LICENSES.md"), licenseText(packages));
}

const union = (a: Names = new Set<string>(), b: Names): Names => (a === "all" || b === "all" ? "all" : a.union(b));

/** The text before and after the name in an import or a `require`, as tsc and Biome write it. */
const imported = /(\bfrom |\bimport |\b(?:import|require)\()"([^"\n]+)"/g;

/** A module that imports the copies. @param module its path in `src` */
const importingCopies = (text: string, module: string): string =>
  text.replace(imported, (whole, before: string, specifier: string) => {
    if (!isVendored(specifier)) return whole;
    const path = relative(dirname(module), join("vendor", vendoredFile(specifier)));
    return `${before}"${path.startsWith(".") ? path : `./${path}`}"`;
  });

function namesIn(path: string, text: string): [specifier: string, Names][] {
  const fixed = parseSync(path, text).module.staticImports.map(({ moduleRequest, entries }) => {
    const values = entries
      .filter(({ isType }) => !isType)
      .map(({ importName: { kind, name } }) => (kind === "Default" ? "default" : (name ?? "*")));
    return [moduleRequest.value, values.includes("*") ? "all" : new Set(values)] as [string, Names];
  });
  const onUse = [...text.matchAll(/\b(?:import|require)\("([^"\n]+)"/g)].map(
    ([, specifier]) => [specifier, "all"] as [string, Names],
  );
  return [...fixed, ...onUse].filter(([specifier]) => isVendored(specifier));
}

/** Bundles each import into a file; shared parts become a file too. Returns the packages that they come from. */
async function bundleCopies(copies: string, wanted: readonly (readonly [string, Names])[]): Promise<VendoredPackage[]> {
  const entries = await Promise.all(
    wanted.map(async ([specifier, names]) => [entryPath(specifier), await entryOf(specifier, names)] as const),
  );
  const { metafile } = await Bun.build({
    entrypoints: entries.map(([path]) => path),
    files: Object.fromEntries(entries),
    target: "bun",
    splitting: true,
    minify: { whitespace: true, syntax: true, keepNames: true },
    naming: { entry: "[name].[ext]", chunk: "shared_[hash].[ext]" },
    outdir: copies,
    metafile: true,
  });
  await compressLists(copies);
  const inputs = Object.keys(metafile!.inputs).filter((path) => path.includes("node_modules/"));
  return Promise.all(inputs.map((path) => licenseOf(resolve(packageRoot, path))));
}

/** Characters of a list that is worth compressing. */
const LONG_LIST = 100_000;

/** Stores long lists, such as a vocabulary, in half of their size: as compressed JSON. */
async function compressLists(copies: string): Promise<void> {
  for (const file of new Bun.Glob("shared_*.js").scanSync({ cwd: copies, absolute: true })) {
    const text = await Bun.file(file).text();
    const [start = "", literal = ""] = /^var \w+=(\[.*?\]);(?=var )/ms.exec(text) ?? [];
    if (literal.length < LONG_LIST) continue;
    const list: unknown = new Function(`return ${literal}`)();
    const json = JSON.stringify(list);
    if (!Bun.deepEquals(JSON.parse(json), list, true)) throw new Failure(`${file}: JSON would change a list`);
    const bytes = Bun.zstdCompressSync(json, { level: 19 }).toBase64();
    const loaded = `JSON.parse(Bun.zstdDecompressSync(Buffer.from("${bytes}","base64")).toString())`;
    await Bun.write(
      file,
      text.replace(start, () => start.replace(literal, () => loaded)),
    );
  }
}

/** A virtual module in the root of the clone, from where packages are found. */
const entryPath = (specifier: string): string => join(packageRoot, vendoredFile(specifier));

/** A module that exports names of another. A module of CommonJS has no names before it runs, so it is run here. */
async function entryOf(specifier: string, names: Names): Promise<string> {
  const list = names === "all" ? Object.keys((await import(specifier)) as object) : [...names];
  return `export { ${list.sort().join(", ")} } from "${specifier}";\n`;
}
