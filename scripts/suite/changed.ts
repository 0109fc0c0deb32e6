/** Finds the test files that the changes of the working tree reach. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { importsUnder } from "./imports.ts";

/** Files that differ from the last commit, and new ones. */
export async function changedFiles(root: string = packageRoot): Promise<string[]> {
  const git = async (...words: string[]) =>
    (await runOrFail("Asking git for changes", ["git", ...words, "-z"], { cwd: root })).output.split("\0");
  const names = [
    ...(await git("diff", "--name-only", "--relative", "HEAD")),
    ...(await git("ls-files", "--others", "--exclude-standard")),
  ];
  return [...new Set(names.filter(Boolean))].sort();
}

/** Folders of TypeScript whose imports are followed. */
const folders = ["src", "test", "scripts", "bench", "examples"];

/** Returns, for each file, the files that import it and the tests that run it. */
export function importersIn(root: string = packageRoot): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>();
  const imports = folders.flatMap((folder) => importsUnder(join(root, folder), root));
  for (const { from, to } of [...imports, ...programsNamed(root), ...modulesLoaded(root)])
    importers.set(to, [...(importers.get(to) ?? []), from]);
  return importers;
}

/** Modules of `src` that are loaded by path, such as workers: `moduleFile("data/loader/worker_main")`. */
const modulesLoaded = (root: string): { readonly from: string; readonly to: string }[] =>
  [...new Bun.Glob("src/**/*.ts").scanSync({ cwd: root })].flatMap((from) =>
    [...readFileSync(join(root, from), "utf8").matchAll(/\bmoduleFile\("([^"]+)"\)/g)].map(([, path]) => ({
      from,
      to: `src/${path}.ts`,
    })),
  );

/** Files that tests name in strings, to run them in separate processes. */
function programsNamed(root: string): { readonly from: string; readonly to: string }[] {
  const paths = /\b(?:src|scripts|bench|examples)(?:\/[\w.-]+)+\.ts\b/g;
  const parts = /"(?:src|scripts|bench|examples)"(?:, "[\w.-]+")+/g; // in a call of join()
  return [...new Bun.Glob("test/**/*.ts").scanSync({ cwd: root })].flatMap((from) => {
    const text = readFileSync(join(root, from), "utf8").replaceAll(/^(?:import|export)\b[^;]*;$/gm, "");
    const joined = [...text.matchAll(parts)].map(([found]) => found.replaceAll('"', "").replaceAll(", ", "/"));
    const named = new Set([...[...text.matchAll(paths)].map(([found]) => found), ...joined]);
    return [...named].filter((to) => to.endsWith(".ts") && existsSync(join(root, to))).map((to) => ({ from, to }));
  });
}

/** Returns the files that import one of these, directly or through others, with the number of imports between. */
export function distancesFrom(
  files: readonly string[],
  importers: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, number> {
  const distances = new Map(files.map((file) => [file, 0]));
  for (const [file, distance] of distances)
    for (const importer of importers.get(file) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  return distances;
}

/**
 * Returns the test files that import one of these files, directly or through others. For a file that TypeScript does
 * not import, such as a kernel or a C++ file, returns the tests of its family.
 */
export function reachedTests(
  changed: readonly string[],
  root: string = packageRoot,
  importers: ReadonlyMap<string, readonly string[]> = importersIn(root),
): string[] {
  const tests = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].sort();
  const reached = distancesFrom(changed, importers);
  const patterns = changed.flatMap((file) => testsBeside(file)).map((pattern) => new Bun.Glob(pattern));
  return tests.filter((test) => reached.has(test) || patterns.some((pattern) => pattern.match(test)));
}

/**
 * Files that TypeScript does not import: a kernel or C++ file is tested by the family of its folder, and shared code by
 * all families.
 */
const beside: readonly (readonly [file: RegExp, tests: (family: string) => readonly string[]])[] = [
  [/^(?:kernels|native\/cpu)\/(?:common|formulas|include|runtime)\//, () => everyOperation],
  [/^native\/cpu\/[^/]+$/, () => everyOperation],
  // the random calls in test/backend/cpu use every function
  [/^native\/cpu\/(\w+)\//, (family) => [...testsOfFamily(family), "test/backend/cpu/**"]],
  [/^kernels\/(\w+)\//, testsOfFamily],
  [/^swift\//, () => ["test/backend/metal/**", "test/cli/**", "test/scripts/dylib.test.ts"]],
  [/^docs\/|\.md$/, () => ["test/*.test.ts", "test/scripts/{links,docs,page_types,repository}.test.ts"]],
  [/^test\/fixtures\//, () => ["test/fixtures/**"]],
];

/** The tests of an operation, or of a part of the package with kernels. */
function testsOfFamily(family: string): readonly string[] {
  const isOperation = !["linalg", "quant", "optim"].includes(family);
  return isOperation ? [`test/ops/${family}/**`, `test/ops/*/**/*${family}*`] : [`test/${family}/**`];
}

const everyOperation = ["test/ops/**", "test/linalg/**", "test/quant/**", "test/optim/**", "test/backend/**"];

function testsBeside(file: string): readonly string[] {
  const [pattern, tests] = beside.find(([each]) => each.test(file)) ?? [];
  return tests?.(pattern!.exec(file)![1] ?? "") ?? [];
}
