/** Checks whether a mutant compiles, with the check of its language on the files that contain it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kernelVersions } from "../../src/backend/metal/kernel_files.ts";
import { run } from "../../src/cli/run.ts";
import { cpuLibraryName, platform } from "../../src/core/paths.ts";
import { findCompiler } from "../cpu/compiler.ts";
import { includedFiles, objectFiles, setsOf } from "../cpu/objects.ts";
import { setsOfMachine } from "../cpu/sets.ts";
import type { Copy } from "./copy.ts";
import type { LimitedRun } from "./limited.ts";
import type { Mutation } from "./mutation.ts";
import type { LanguageName } from "./sites.ts";

/** Checks a mutant in place; returns why it does not count, or undefined if it compiles. */
type Check = (copy: Copy, file: string) => Promise<string | undefined>;

const CHECK_SECONDS = 120;
const BUILD_SECONDS = 540;

export const compileChecks: Readonly<Record<LanguageName, Check>> = {
  TypeScript: checkTypes,
  "C++": buildDylib,
  kernels: checkKernels,
};

const project = "tsconfig.mutant.json";
const typeInformation = join("build", "mutants.tsbuildinfo");

/**
 * Checks the types of all of `src`. Without a mutant, the check writes the compiler's state for each file, so that with
 * a mutant it checks only that file and the files that see a changed type. An unused name is not a type error, so tests
 * run such a mutant.
 */
async function checkTypes(copy: Copy): Promise<string | undefined> {
  const { status, output } = await runTypes(copy);
  return status === 0 ? undefined : firstError(output);
}

/** @param isWhole checks all files, also those that cannot see a difference */
function runTypes(copy: Copy, isWhole = false): Promise<LimitedRun> {
  const unused = { noUnusedLocals: false, noUnusedParameters: false };
  const incremental = isWhole ? { incremental: false } : { incremental: true, tsBuildInfoFile: typeInformation };
  const compilerOptions = { ...unused, ...incremental };
  const settings = { extends: "./tsconfig.json", compilerOptions, include: ["src"], exclude: ["src/**/page"] };
  writeFileSync(join(copy.root, project), JSON.stringify(settings));
  return copy.run([process.execPath, join("node_modules", ".bin", "tsc"), "--project", project], CHECK_SECONDS);
}

/**
 * Checks the types of many mutants at once, since one check takes as long as many: all mutants in different files are
 * in place together, and an error belongs to the mutant in its file. If an error is in another file, halves are
 * checked.
 *
 * @returns for each mutant why it does not compile; undefined if it does
 */
export async function checkManyTypes(
  copy: Copy,
  mutations: readonly Mutation[],
): Promise<ReadonlyMap<Mutation, string | undefined>> {
  const found = new Map<Mutation, string | undefined>();
  const path = join(copy.root, typeInformation);
  const information = existsSync(path) ? readFileSync(path) : undefined;
  for (let left = [...mutations]; left.length > 0; left = left.filter((each) => !found.has(each))) {
    const apart = [...new Map(left.toReversed().map((each) => [each.file, each])).values()];
    for (const [mutation, why] of await checkApart(copy, apart, information)) found.set(mutation, why);
  }
  return found;
}

/**
 * @param mutations of different files
 * @param information the compiler's state for the files without a mutant. The state after a check of mutants may still
 * contain errors of a removed mutant.
 */
async function checkApart(
  copy: Copy,
  mutations: readonly Mutation[],
  information: Uint8Array | undefined,
): Promise<[Mutation, string | undefined][]> {
  if (information) writeFileSync(join(copy.root, typeInformation), information);
  const planted = mutations.map((mutation) => copy.planted(mutation));
  let run: LimitedRun;
  try {
    run = await runTypes(copy);
    // After a change of tensor/format.ts, TypeScript 7.0 misses a merged declaration if it checks incrementally.
    const isElsewhere = mutations.length === 1 && !run.output.includes(`${mutations[0].file}(`);
    if (run.status !== 0 && isElsewhere) run = await runTypes(copy, true);
  } finally {
    for (const each of planted) each[Symbol.dispose]();
  }
  if (run.status === 0) return mutations.map((mutation) => [mutation, undefined]);
  if (mutations.length === 1) return [[mutations[0], firstError(run.output)]];
  const errors = new Map<string, string>();
  for (const [line, file] of run.output.matchAll(/^(\S+)\(\d+,\d+\): error .*$/gm))
    if (!errors.has(file)) errors.set(file, line);
  const files = new Set(mutations.map(({ file }) => file));
  if (errors.size > 0 && [...errors.keys()].every((file) => files.has(file)))
    return mutations.map((mutation) => [mutation, errors.get(mutation.file)]);
  const middle = mutations.length >> 1;
  return [
    ...(await checkApart(copy, mutations.slice(0, middle), information)),
    ...(await checkApart(copy, mutations.slice(middle), information)),
  ];
}

/** Builds the dylib for this processor's instruction set. */
async function buildDylib(copy: Copy): Promise<string | undefined> {
  const { status, output, isOver } = await copy.run([process.execPath, "scripts/mutate/dylib.ts"], BUILD_SECONDS);
  if (isOver) return `the build takes over ${BUILD_SECONDS} s`;
  return status === 0 ? undefined : firstError(output.replaceAll(`${copy.root}/`, ""));
}

/** Paths that the checks change. Their contents after a check without a mutant are restored after each mutant. */
export const checkedPaths: Readonly<Record<LanguageName, readonly string[]>> = {
  TypeScript: [typeInformation],
  "C++": [join("build", platform, cpuLibraryName), join("native", ".build", "cpu")],
  kernels: [],
};

/**
 * Whether the compiler reads a line of C++ for this machine: an `#error` in its place must fail in some object. Lines
 * for other processors have mutants that no test here can find.
 */
export async function isCompiled({ root }: Pick<Copy, "root">, { file, line }: Mutation): Promise<boolean> {
  const compiler = await findCompiler();
  const names = setsOfMachine(setsOf(compiler));
  const objects = objectFiles(join(root, "native", "cpu"), root, compiler, [], names);
  const path = join(root, file);
  const source = readFileSync(path, "utf8");
  const lines = source.split("\n");
  let at = line - 1;
  while (lines[at - 1]?.endsWith("\\")) at--; // the line that a macro begins on
  writeFileSync(path, lines.toSpliced(at, 0, "#error").join("\n"));
  try {
    for (const object of objects.filter((each) => includedFiles(each.source).includes(path)).slice(0, MOST_OBJECTS)) {
      const { status } = await run([...compiler.command, ...object.flags, "-E", object.source, "-o", "/dev/null"]);
      if (status !== 0) return true;
    }
    return false;
  } finally {
    writeFileSync(path, source);
  }
}

/** If many objects include a header, only some are compiled, since the others read it in the same way. */
const MOST_OBJECTS = 6;

/** Compiles the kernel, or those that include the header, with the strict typing pass. */
async function checkKernels(copy: Copy, file: string): Promise<string | undefined> {
  const kernels = file.endsWith(".metal") ? [file] : kernelsWith(copy, file);
  // Kernels also compile at newer versions than they require, so all are compiled at the newest required one.
  const version = kernels.map((kernel) => kernelVersions[kernel.slice("kernels/".length)]).find(Boolean) ?? "3.1";
  const command = [process.execPath, "src/cli/orchard.ts", "metal", "check", `--std=metal${version}`, ...kernels];
  const { status, output } = await copy.run(command, CHECK_SECONDS);
  return status === 0 ? undefined : firstError(output);
}

/** Returns some of the kernels that include a header, directly or through another. */
function kernelsWith({ root }: Copy, header: string, count = 3): string[] {
  const files = [...new Bun.Glob("kernels/**/*.{metal,h}").scanSync({ cwd: root })].sort();
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const holders = new Set([header]);
  for (const holder of holders) {
    const include = `"${holder.slice("kernels/".length)}"`;
    for (const [file, text] of texts) if (text.includes(include)) holders.add(file);
  }
  return [...holders].filter((file) => file.endsWith(".metal")).slice(0, count);
}

const firstError = (output: string): string =>
  /^.*\berror\b.*$/im.exec(output)?.[0].trim() ?? output.trim().split("\n").at(-1) ?? "";
