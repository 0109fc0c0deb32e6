/**
 * Remembers which files passed a check that reads each file alone, such as that of its format, in the user's cache for
 * all clones: another run checks only files of other contents.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { ContentCache, contentKey, contentOf } from "../content_cache.ts";

/** A list takes 65 bytes for each file. */
const MOST_BYTES = 16e6;

export interface FilesCheck {
  /** Names the list of passed files. */
  readonly name: string;
  /** The files that set the rules and the tool's version. With other ones, every file is checked again. */
  readonly rules: readonly string[];
  readonly root?: string;
  /** The folder of caches. Default: the user's */
  readonly parent?: string;
}

/**
 * Checks the files that have not passed with their contents, and remembers all of them if there is no problem.
 *
 * @param problemsOf checks at least one file, and returns the problems
 * @returns the problems
 */
export async function checkOnce(
  files: readonly string[],
  { name, rules, root = packageRoot, parent }: FilesCheck,
  problemsOf: (left: readonly string[]) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const cache = new ContentCache("formats", MOST_BYTES, parent);
  // With the path, because the nearest file of rules above a file may apply.
  const keyOf = (file: string) => contentKey([file, contentOf(join(root, file)) ?? "no file"]);
  const list = join(root, "build", "formats", `${name}.txt`);
  mkdirSync(dirname(list), { recursive: true });
  const key = contentKey([name, ...rules.map(keyOf)]);
  const passed = new Set(cache.restore(key, list) ? readFileSync(list, "utf8").split("\n") : []);
  const keys = new Map(files.map((file) => [file, keyOf(file)])); // before the check, during which a file may change
  const left = files.filter((file) => !passed.has(keys.get(file)!));
  if (left.length === 0) return [];
  const problems = await problemsOf(left);
  if (problems.length > 0) return problems;
  writeFileSync(list, [...keys.values()].join("\n"));
  cache.store(key, list);
  cache.trim();
  return [];
}
