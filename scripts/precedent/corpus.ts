/** Reads the constructs of other projects that are known to run on Apple's hardware, and keeps only the constructs. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { contentKey } from "../content_cache.ts";
import { Failure } from "../failure.ts";
import { embeddedPrograms } from "./embedded.ts";
import { readHost } from "./host.ts";
import { readMsl } from "./msl.ts";
import { isForeign, metalNames, type Uses } from "./ours.ts";
import { type Include, preprocess, type SourceFile } from "./preprocessor.ts";
import { readSwift } from "./swift.ts";
import type { Counts, Language, Origin } from "./table.ts";
import { isBuiltInType } from "./types.ts";

interface Project extends Origin {
  readonly files: readonly SourceFile[];
}

/** For a language: the constructs with the number of projects that use each, and the projects that use any. */
export interface Corpus {
  readonly origins: readonly Origin[];
  readonly counts: Counts;
}

/**
 * Reads projects, one per folder. The last two parts of the path are the project's name; its version is in a file
 * `.commit`, or comes from git. A file that occurs in several projects counts only for the first one.
 */
export function readCorpus(
  folders: readonly string[],
  ours: Readonly<Record<Language, Uses>>,
): Readonly<Record<Language, Corpus>> {
  const seen = new Set<string>();
  const found = folders.map((folder) => {
    const project = projectOf(folder);
    const fresh = project.files.filter(({ text }) => isFirst(text, seen));
    const msl = mslOf(project, new Set(fresh.map(({ path }) => path)));
    return { project, msl, swift: swiftOf(fresh, ours.swift) };
  });
  const corpusOf = (language: Language): Corpus => {
    const all = new Map<string, number>();
    for (const { [language]: constructs } of found)
      for (const construct of constructs) all.set(construct, (all.get(construct) ?? 0) + 1);
    const counts = new Map([...all].filter((each) => isKept[language](...each, ours[language])));
    const origins = found.filter(({ [language]: constructs }) => [...constructs].some((each) => counts.has(each)));
    return { origins: origins.map(({ project: { project, version } }) => ({ project, version })), counts };
  };
  return { msl: corpusOf("msl"), swift: corpusOf("swift") };
}

function projectOf(folder: string): Project {
  const path = resolve(folder);
  if (!existsSync(path)) throw new Failure(`precedent: expected the folder of a project, got ${folder}`);
  const globs = new Bun.Glob("**/*.{metal,metalh,msl,h,hpp,swift,py,rs,m,mm,cpp}");
  const names = [...globs.scanSync({ cwd: path, dot: false })].sort();
  const files = names.map((name) => ({ path: join(path, name), text: readFileSync(join(path, name), "utf8") }));
  return { project: `${basename(dirname(path))}/${basename(path)}`, version: versionOf(path), files };
}

function versionOf(path: string): string {
  const file = join(path, ".commit");
  if (existsSync(file)) return readFileSync(file, "utf8").trim();
  const { stdout, exitCode } = Bun.spawnSync(["git", "-C", path, "rev-parse", "HEAD"], { stderr: "ignore" });
  if (exitCode !== 0) throw new Failure(`precedent: ${path} has no version: expected a git checkout or a file .commit`);
  return stdout.toString().trim();
}

function isFirst(text: string, seen: Set<string>): boolean {
  const key = contentKey([text.replace(/\s+/g, " ")]);
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

// --- Metal Shading Language

const isKernelFile = (path: string): boolean => /\.(metal|metalh|msl)$/.test(path);

/** A header that only kernels include. C++ in a host's header is not a precedent for kernels. */
const isKernelHeader = ({ path, text }: SourceFile): boolean =>
  /\.(h|hpp)$/.test(path) &&
  /#include <metal_|using namespace metal|\[\[\s*(kernel|buffer\()/.test(text) &&
  !/R"|#\s*import|#\s*include <(string|vector|map|memory|functional|utility|unordered_map|c?std\w*|iostream|simd)/.test(
    text,
  );

function mslOf({ files }: Project, fresh: ReadonlySet<string>): ReadonlySet<string> {
  const include = includeOf(files);
  const found = new Set<string>();
  for (const file of files) {
    if (!fresh.has(file.path)) continue;
    const programs = isKernelFile(file.path) || isKernelHeader(file) ? [file] : embeddedPrograms(file);
    for (const program of programs)
      readMsl(program, include, (construct, at) => {
        if (fresh.has(at.file)) found.add(construct);
      });
  }
  return found;
}

/** Finds a file by the end of its path, the nearest first. */
function includeOf(files: readonly SourceFile[]): Include {
  const byName = Map.groupBy(files, ({ path }) => basename(path));
  return (name, from) => {
    const ends = name.split("/").filter((part) => part !== "." && part !== "..");
    const found = (byName.get(basename(name)) ?? []).filter(({ path }) => path.endsWith(`/${ends.join("/")}`));
    return found.find(({ path }) => path === join(dirname(from), name)) ?? found[0];
  };
}

// --- Swift

/** Members belong to a file, since another file may use the name differently; types belong to the project. */
function swiftOf(files: readonly SourceFile[], ours: Uses): ReadonlySet<string> {
  const read = files.filter(({ path }) => path.endsWith(".swift")).map(readSwift);
  const types = new Set(read.flatMap(({ declared }) => [...declared]).filter((name) => /^[A-Z]/.test(name)));
  const functions = read.flatMap((file) => file.functions);
  const uses = read.flatMap((file) => {
    const declared = new Set([...types, ...file.declared]);
    return file.uses.filter(({ construct, name }) => isForeign(construct, name, declared, functions));
  });
  const methods = [...ours.keys()].filter((construct) => construct.startsWith("method ")).map((text) => text.slice(7));
  const hosts = files.filter(({ path }) => /\.(h|hpp|m|mm|cpp)$/.test(path));
  const other = hosts.flatMap((file) => [...readHost(file, metalTypes(), metalNames(), methods)]);
  return new Set([...uses.map(({ construct }) => construct), ...other]);
}

const metalTypes = (): ReadonlySet<string> => new Set([...metalNames()].filter((name) => name.startsWith("MTL")));

// --- Which constructs to keep

let vocabulary: ReadonlySet<string> | undefined;

/** Returns every name in the headers of the software device. Any other name in a kernel belongs to the project. */
function mslNames(): ReadonlySet<string> {
  if (vocabulary) return vocabulary;
  const folder = join(packageRoot, "swift", "Sources", "MetalRuntime", "metal");
  const paths = [...new Bun.Glob("**/*").scanSync({ cwd: folder })].sort();
  const headers = paths.map((name) => ({ path: join(folder, name), text: readFileSync(join(folder, name), "utf8") }));
  const all = headers.map(({ path }) => `#include "${basename(path)}"`).join("\n");
  const { tokens } = preprocess({ path: join(folder, "all"), text: all }, includeOf(headers));
  const names = tokens.filter(({ kind }) => kind === "name").map(({ text }) => text);
  // Names of macros do not occur after preprocessing.
  vocabulary = new Set([...names, ...headers.flatMap(({ text }) => text.match(/\b[A-Za-z_]\w*/g) ?? [])]);
  return vocabulary;
}

/** Names of Metal 4's tensors, some of which are in the software device's headers. */
const isOfTensors = (name: string): boolean => /tensor|extents|matmul2d|execution_simdgroup/.test(name);

const isMetals = (name: string): boolean =>
  mslNames().has(name) || isBuiltInType(name) || isOfTensors(name) || /^([xyzw]{2,4}|[rgba]{2,4})$/.test(name);

/** Whether to keep a construct that this number of projects uses. */
type Kept = (construct: string, count: number, ours: Uses) => boolean;

/** For kernels: all constructs except the projects' names. */
const isKeptOfMsl: Kept = (construct, _, ours) => {
  if (ours.has(construct)) return true;
  if (/[^ -~…]|[\\`@$]/.test(construct)) return false; // code of another language between two strings
  const [kind, rest] = [construct.split(" ", 1)[0], construct.slice(construct.indexOf(" ") + 1)];
  if (kind === "test") return /__/.test(rest);
  if (kind === "include") return /^<(metal_|simd\/|Metal|TargetConditionals)/.test(rest);
  if (!/^(name|call|template|member)$/.test(kind)) return true;
  const names = rest.split(/[(<]/, 1)[0].split("::");
  return names[0] === "mpp" || names.every(isMetals);
};

/** For Swift: Metal's names, and constructs of many projects. */
const isKeptOfSwift: Kept = (construct, count, ours) =>
  ours.has(construct) || count >= 20 || metalNames().has(/^\S+ (\w+)/.exec(construct)?.[1] ?? "");

const isKept: Readonly<Record<Language, Kept>> = { msl: isKeptOfMsl, swift: isKeptOfSwift };
