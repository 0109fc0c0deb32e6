/**
 * Returns the constructs of this project: of its kernels, of programs in strings of its other files, and of the dylib
 * for Macs.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { filesOf } from "../format/files.ts";
import { embeddedPrograms } from "./embedded.ts";
import { readMsl } from "./msl.ts";
import type { Include, SourceFile } from "./preprocessor.ts";
import { readSwift, type SwiftFile } from "./swift.ts";
import type { Language } from "./table.ts";

/** Each construct with its places, `file:line`. */
export type Uses = ReadonlyMap<string, ReadonlySet<string>>;

export const swiftFolder = "swift/Sources/OrchardMetal";

/** The inputs of the check; tests replace some of them. */
export interface Sources {
  readonly kernels: readonly SourceFile[];
  readonly headers: Readonly<Record<string, string>>;
  /** Files of other languages that may hold kernels. */
  readonly others: readonly SourceFile[];
  readonly swift: readonly SourceFile[];
}

export async function ourSources(): Promise<Sources> {
  await import("../../src/index.ts"); // this file defines the enumerations that kernels include
  const { kernelHeaders } = await import("../../src/backend/metal/launch.ts");
  const others = filesOf(["src/**/*.ts", `${swiftFolder}/*.swift`]).map(sourceOf);
  return {
    kernels: filesOf(["kernels/**/*.metal"]).map(sourceOf),
    headers: kernelHeaders(),
    others: others.filter(({ text }) => text.includes("metal_stdlib")),
    swift: others.filter(({ path }) => path.startsWith(swiftFolder)),
  };
}

const sourceOf = (path: string): SourceFile => ({ path, text: readFileSync(join(packageRoot, path), "utf8") });

export const ourUses = (sources: Sources): Readonly<Record<Language, Uses>> => ({
  msl: mslUses(sources),
  swift: swiftUses(sources),
});

function mslUses({ kernels, headers, others }: Sources): Uses {
  const include: Include = (name) => {
    const text = headers[name];
    const path = name.startsWith("generated/") ? name : `kernels/${name}`;
    return text === undefined ? undefined : { path, text };
  };
  const uses = new Map<string, Set<string>>();
  for (const source of [...kernels, ...others.flatMap(embeddedPrograms)])
    readMsl(source, include, (construct, { file, line }) => addPlace(uses, construct, `${file}:${line}`));
  return uses;
}

/** The C interface: its name, fields and constants. */
const interfaceModule = "COrchard";
const interfaceFolder = `swift/Sources/${interfaceModule}/include`;

function swiftUses({ swift }: Sources): Uses {
  const files = swift.map(({ path, text }) => ({ path, ...readSwift({ path, text: withoutSoftwareDevice(text) }) }));
  const projectNames = new Set(files.flatMap(({ declared }) => [...declared]));
  projectNames.add(interfaceModule);
  for (const { text } of filesOf([`${interfaceFolder}/*.h`]).map(sourceOf))
    for (const [name] of text.matchAll(/\b[A-Za-z_]\w*/g)) if (!metalNames().has(name)) projectNames.add(name);
  const functions = files.flatMap((file) => file.functions);
  const uses = new Map<string, Set<string>>();
  for (const { path, uses: found } of files)
    for (const { construct, name, line } of found)
      if (isForeign(construct, name, projectNames, functions)) addPlace(uses, construct, `${path}:${line}`);
  return uses;
}

function addPlace(uses: Map<string, Set<string>>, construct: string, place: string): void {
  const places = uses.get(construct);
  if (places) places.add(place);
  else uses.set(construct, new Set([place]));
}

/**
 * Whether a name is Metal's. The project may declare such a name too; any other name counts as Metal's if the project
 * declares it nowhere.
 */
export function isForeign(
  construct: string,
  name: string,
  declaredNames: SwiftFile["declared"],
  functions: SwiftFile["functions"],
): boolean {
  if (!declaredNames.has(name) && !construct.startsWith("init ")) return true;
  if (!metalNames().has(name) || construct.startsWith("function ")) return false;
  const initializer = /^init \w+(\(.*\))$/.exec(construct)?.[1];
  if (initializer && functions.includes(`init${initializer}`)) return false;
  const call = /^method (\w+\(.*\))$/.exec(construct)?.[1];
  return call === undefined || !functions.some((declared) => isCallOf(call, declared));
}

/** Parameters with a default value may be omitted. */
function isCallOf(call: string, declared: string): boolean {
  const [callName, callLabels] = partsOfSignature(call);
  const [name, labels] = partsOfSignature(declared);
  if (callName !== name) return false;
  let at = 0;
  for (const label of callLabels) {
    const found = labels.indexOf(label, at);
    if (found < 0) return false;
    at = found + 1;
  }
  return true;
}

const partsOfSignature = (signature: string): [string, string[]] => {
  const [name, labels] = signature.slice(0, -1).split("(");
  return [name, labels.split(":").filter(Boolean)];
};

let names: ReadonlySet<string> | undefined;

/**
 * Returns the Swift names of types and members in Apple's Metal before macOS 26. The dylib uses nothing newer. It has
 * properties with the names of Metal 4's members, such as `rank` and `library`.
 */
export function metalNames(): ReadonlySet<string> {
  names ??= new Set(
    ["metal-api.tsv", "metal-api-extra.tsv", "metal-types.tsv"]
      .map((file) => sourceOf(`swift/Tests/Facts/${file}`).text.replace(/^.*\t26\.0$/gm, ""))
      .flatMap((text) => [...text.matchAll(/\b(?:func|var|case|let) (\w+)|\bMTL\w+/g)])
      .map(([all, member]) => member ?? all),
  );
  return names;
}

/** Removes code that is compiled only for the software device, which never runs on a Mac. Lines keep their numbers. */
const withoutSoftwareDevice = (text: string): string =>
  text.replace(/^#if canImport\(MetalRuntime\)$[\s\S]*?^#(else|endif)$/gm, (part) => part.replace(/[^\n]/g, ""));
