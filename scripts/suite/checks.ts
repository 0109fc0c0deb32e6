/** Checks that do not run the repository's programs: types and formats. A file or a tool is one check. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { type RunResult, run, runOrFail } from "../../src/cli/run.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { ContentCache, contentKey, contentOf } from "../content_cache.ts";
import { type Counts, noTests, oneFailed, onePassed, sum } from "../counts.ts";
import { clangFiles, clangProblems } from "../format/clang.ts";
import { lineProblems } from "../format/lines.ts";
import { checkOnce } from "../format/passed.ts";
import { swiftFiles, swiftProblems } from "../format/swift.ts";

/** Code that runs in Bun, and code that runs in a browser. */
const projects = [".", "src/train/dashboard/page", "src/serve/page"];

export const checkTypes = async (): Promise<Counts> => sum(await Promise.all(projects.map(checkProject)));

/** The compiler's information about a project's files, by their content, for all clones: a few megabytes each. */
const typesCache = new ContentCache("types", 100e6);

async function checkProject(project: string): Promise<Counts> {
  const output = await typeProblems(project, ({ status, output }) => (status === 0 ? "" : output.trim()));
  if (output === "") return onePassed;
  console.log(output);
  return oneFailed(`tsc --project ${project}`);
}

/**
 * Checks the types of a project again only in files that changed, and in those that import them.
 *
 * @param problemsOf returns the problems in the compiler's output; "" if there are none
 * @returns the problems
 */
export async function typeProblems(project: string, problemsOf: (result: RunResult) => string): Promise<string> {
  const information = join(packageRoot, "build", "types", `${project.replaceAll(/\W/g, "_")}.tsbuildinfo`);
  const key = contentKey([project, contentOf(join(packageRoot, "bun.lock")) ?? ""]);
  mkdirSync(dirname(information), { recursive: true });
  if (!existsSync(information)) typesCache.restore(key, information);
  const words = ["--noEmit", "--pretty", "false", "--project", project, "--incremental", "--tsBuildInfoFile"];
  const check = async () => problemsOf(await runQuietly("tsc", [...words, information]));
  // After a change of a class that others use, the compiler may use outdated information, so a failed check is repeated
  // without it.
  const isKnown = existsSync(information);
  let problems = await check();
  if (problems !== "" && isKnown) {
    rmSync(information, { force: true });
    problems = await check();
  }
  if (problems === "" && existsSync(information)) typesCache.store(key, information);
  typesCache.trim();
  return problems;
}

const versions = ["bun.lock", "package.json"];

/** Biome reads each file alone, with its rules and those that it chooses by the dependencies in package.json. */
export async function checkStyle(): Promise<Counts> {
  const check = { name: "biome", rules: ["biome.json", "scripts/format/spreads.grit", ...versions] };
  const [output] = await checkOnce(await sourceFiles(), check, async (left) => {
    // Files that Biome ignores are no error. If there are many files, it finds them itself.
    const words = left.length > MOST_WORDS ? ["."] : ["--no-errors-on-unmatched", ...left];
    const { status, output } = await runQuietly("biome", ["check", ...words]);
    return status === 0 ? [] : [output.trim()];
  });
  if (output === undefined) return onePassed;
  console.log(output);
  return oneFailed("biome check");
}

/** A command may have about two megabytes of arguments. */
const MOST_WORDS = 1000;

/** The files of the repository, and new ones that git does not ignore. */
async function sourceFiles(): Promise<string[]> {
  const words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { output } = await runOrFail("Asking git for files", words, { cwd: packageRoot });
  return [...new Set(output.split("\0").filter(Boolean))].sort();
}

/** @param among the files to check, of which only C++ and MSL count. Default: all */
export async function checkClangFormat(among?: readonly string[]): Promise<Counts> {
  const files = clangFiles();
  const some = files.filter((file) => among?.includes(file));
  if (among !== undefined) return one(some.length === 0 ? [] : await clangProblems(some));
  const rules = [".clang-format", "kernels/.clang-format", ...versions];
  return one(await checkOnce(files, { name: "clang-format", rules }, clangProblems));
}

export const checkSwiftFormat = async (swift: SwiftToolchain): Promise<Counts> =>
  one(await swiftProblems(swift, swiftFiles()));
export const checkLines = async (): Promise<Counts> => one(await lineProblems());

/** A check that fails once for each line that it reports. */
function one(problems: readonly string[]): Counts {
  if (problems.length === 0) return onePassed;
  for (const problem of problems) console.log(problem);
  console.log("`bun run format` formats; a line that is still too long afterwards is broken by hand");
  return { ...noTests, failed: problems.length, failures: problems };
}

/** Runs an installed tool with the running Bun, since there may be no other JavaScript engine. */
const runQuietly = (name: string, words: readonly string[]) =>
  run([process.execPath, join(packageRoot, "node_modules", ".bin", name), ...words], { cwd: packageRoot });
