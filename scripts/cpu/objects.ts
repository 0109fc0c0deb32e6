/** Lists the object files of the cpu backend's dylib, and finds those that are out of date. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { platform } from "../../src/core/paths.ts";
import { contentKey, contentOf } from "../content_cache.ts";
import { Failure } from "../failure.ts";
import type { CppCompiler } from "./compiler.ts";

/** An object file, its source and its flags. */
export interface ObjectFile {
  readonly source: string;
  readonly path: string;
  readonly flags: readonly string[];
}

/** An instruction set: its name in the sources, and the compiler's flags. The most basic comes first. */
export interface InstructionSet {
  readonly name: string;
  readonly flags: readonly string[];
  /** Whether to optimize less: see {@link lessOptimized}. */
  readonly isRare?: boolean;
}

const instructionSets: Partial<Record<string, readonly InstructionSet[]>> = {
  "linux-x64": intelSets((level) => `-march=x86-64-${level}`),
  "darwin-x64": intelSets((level) => `-march=x86-64-${level}`),
  "linux-arm64": [{ name: "neon", flags: [] }],
  "darwin-arm64": [{ name: "neon", flags: ["-mcpu=apple-m1"] }],
};

/** Returns the sets that the dylib may have kernels for, the most basic first. */
export function setsOf({ instructionSets: ofCompiler }: Pick<CppCompiler, "instructionSets">): InstructionSet[] {
  const sets = ofCompiler ?? instructionSets[platform] ?? [];
  if (sets.length === 0) throw new Failure(`The cpu backend has no instruction set for ${platform}.`);
  return [...sets];
}

/** Returns the instruction sets of x86-64, given how the compiler spells a processor level. */
export function intelSets(processor: (level: "v2" | "v3" | "v4") => string): InstructionSet[] {
  return [
    { name: "baseline", flags: [processor("v2")], isRare: true },
    { name: "avx2", flags: [processor("v3")] },
    { name: "avx512", flags: [processor("v4"), "-mprefer-vector-width=512"] },
  ];
}

/**
 * No flag here changes a value: no `-ffast-math`, and products and sums are fused only where the code says so
 * (`-ffp-contract=off`), and then on every instruction set that supports it. The code reads neither `errno` nor
 * floating-point traps, and without them loops with conditions are vectorized.
 */
const commonFlags = [
  "-std=c++17",
  "-O3",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-fPIC",
  "-fvisibility=hidden",
  "-ffunction-sections",
  "-ffp-contract=off",
  "-fno-math-errno",
  "-fno-trapping-math",
  "-pthread",
];

/** GCC 12 warns about operands that intrinsics leave undefined on purpose (GCC bug 105593). */
const gccFlags = ["-Wno-maybe-uninitialized"];

/** `|` and `&` of conditions are intended: both sides are computed, so that the loop is vectorized. */
const clangFlags = ["-Wno-bitwise-instead-of-logical", "-Wno-bitwise-conditional-parentheses"];

/**
 * Returns every object file in link order: common ones, then `*.isa.cpp` for each instruction set, the most basic
 * first. If several contain a weak definition, the linker keeps the first one, which uses the most basic instructions,
 * so every caller can run it.
 *
 * @param more flags that come last and take precedence
 * @param built the names of the sets to compile; by default all
 */
export function objectFiles(
  sourceFolder: string,
  objectFolder: string,
  compiler: Pick<CppCompiler, "isClang" | "instructionSets">,
  more: readonly string[] = [],
  built?: readonly string[],
): ObjectFile[] {
  const sets = setsOf(compiler);
  const sources = [...new Bun.Glob("**/*.cpp").scanSync({ cwd: sourceFolder })].sort();
  const object = (source: string, set: InstructionSet): ObjectFile => ({
    source: join(sourceFolder, source),
    path: join(objectFolder, `${source.replaceAll("/", ".").slice(0, -".cpp".length)}.${set.name}.o`),
    flags: flagsOf(compiler, set, more),
  });
  const ofAll = { ...sets[0], isRare: false };
  const common = sources.filter((source) => !isPerSet(source)).map((source) => object(source, ofAll));
  const perSet = sets
    .filter(({ name }) => built === undefined || built.includes(name))
    .flatMap((set) => sources.filter(isPerSet).map((source) => object(source, set)));
  return [...common, ...perSet];
}

/**
 * With these flags GCC 12 compiles a file in three fifths of the time, and its code is up to a quarter slower, with the
 * same values. For an instruction set that only processors from before 2013 need, the shorter build is worth it. Some
 * loops can't be vectorized for that set, such as those of logarithms in float64, about which clang warns.
 */
export const lessOptimized = ({ isClang }: Pick<CppCompiler, "isClang">): string[] => [
  "-O2",
  ...(isClang ? ["-Wno-pass-failed"] : ["-fvect-cost-model=dynamic"]),
];

/** Whether a source is compiled once for each instruction set. */
export const isPerSet = (source: string): boolean => source.endsWith(".isa.cpp");

/** Returns the flags with which a file is compiled for an instruction set. */
export const flagsOf = (
  { isClang }: Pick<CppCompiler, "isClang">,
  { name, flags, isRare = false }: InstructionSet,
  more: readonly string[] = [],
): string[] => [
  ...commonFlags,
  ...(isRare ? lessOptimized({ isClang }) : []),
  ...(isClang ? clangFlags : gccFlags),
  ...flags,
  `-DORCHARD_ISA=${name}`,
  ...more,
];

/** The folder next to the objects with precompiled headers during compilation. */
export const precompiledFolder = "precompiled";

/** Whether an object was compiled from inputs that differ from the key: see {@link objectKey}. */
export const isOutOfDate = ({ path }: ObjectFile, key: string): boolean =>
  !existsSync(path) || !existsSync(keyFile(path)) || readFileSync(keyFile(path), "utf8") !== key;

/** The file next to an object that stores its key. */
export const keyFile = (path: string): string => `${path}.key`;

/**
 * Returns a hash of everything that an object depends on: the compiler, its flags, the source and the files that it
 * includes, by content and by their paths from the source. The location and the times of the source tree do not matter,
 * unless debug information names the files. The standard library's headers are covered by the compiler's version.
 */
export function objectKey(
  { command, version }: Pick<CppCompiler, "command" | "version">,
  { source, flags }: ObjectFile,
): string {
  const folder = flags.some((flag) => /^-g(?!0$)/.test(flag)) ? dirname(source) : "";
  const files = includedFiles(source).flatMap((path) => {
    const content = contentOf(path);
    return [relative(dirname(source), path), content ? "has" : "is missing", content ?? ""];
  });
  return contentKey([version, ...command, ...flags, folder, ...files]);
}

/**
 * Returns a source and the files it includes in quotation marks, directly or not. Also returns files whose include the
 * preprocessor would skip, and missing files, so that adding one changes the key.
 */
export function includedFiles(source: string): string[] {
  const files = new Set([source]);
  for (const file of files) {
    const text = contentOf(file)?.toString() ?? "";
    for (const [, path] of text.matchAll(/^[ \t]*#[ \t]*include[ \t]*"([^"]+)"/gm))
      files.add(resolve(dirname(file), path));
  }
  return [...files];
}

/** A readable name of the object: `conversion.isa.avx2`. */
export const objectName = ({ path }: ObjectFile): string => basename(path, ".o");
