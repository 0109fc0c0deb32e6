/** Selects the test files that judge a mutant: those that reach its file, the nearest first, within a time budget. */
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseSync } from "oxc-parser";
import { distancesFrom, importersIn, reachedTests } from "../suite/changed.ts";
import { classOf } from "../suite/classes.ts";
import { measuredTimings, type Timings } from "../suite/order.ts";

/** A test file, and its last measured time in seconds. */
export interface TestFile {
  readonly file: string;
  readonly seconds: number;
}

/** The relation of a test file to a mutant's file. */
interface Relation {
  readonly inFolder: boolean;
  readonly isDirect: boolean;
  readonly stem: string;
  /** The tests of files that import the mutant's file, such as `test/transforms/vmap` for `src/transforms/vmap.ts`. */
  readonly users: ReadonlySet<string>;
  /** The exports of the mutant's file. */
  readonly names: readonly string[];
  /** Whether the file has argument tables, which `test/arguments` compares with PyTorch and the documentation. */
  readonly hasTables: boolean;
}

/** The imports of a tree's tests, read once for many mutants. */
export class Tests {
  readonly #root: string;
  readonly #importers: ReadonlyMap<string, readonly string[]>;
  readonly #timings: Timings;
  readonly #texts = new Map<string, string>();

  constructor(root: string) {
    this.#root = root;
    this.#importers = importersIn(root);
    this.#timings = measuredTimings(root);
  }

  /**
   * Returns the nearest test files that reach a file, whose measured times add up to at most `seconds`. The choice does
   * not depend on the speed of this machine. The first one is always included.
   *
   * @param line the mutant's line, from 1: tests that mention its function come first
   */
  nearest(file: string, seconds: number, line = 0): TestFile[] {
    const source = this.#textOf(file);
    const names = [...exportedNames(file, source), ...functionsAt(file, source, line)];
    const hasTables = /\bparameters\(/.test(source);
    const distances = distancesFrom([file], this.#importers);
    const reached = reachedTests([file], this.#root, this.#importers).filter((test) => !isOfOther(file, test));
    const folders = mirrorsOf(file, reached);
    const users = usersOf(distances);
    const ranked = reached.map((test) => ({
      file: test,
      seconds: this.#timings(test),
      rank: this.#rankOf(test, {
        inFolder: folders.some((folder) => isIn(test, folder)),
        isDirect: distances.get(test) === 1,
        stem: stemOf(file),
        users,
        names,
        hasTables,
      }),
    }));
    ranked.sort((left, right) => left.rank - right.rank || left.seconds - right.seconds);
    let left = seconds;
    return ranked.filter((test, at) => {
      const isTaken = at === 0 || test.seconds <= left;
      if (isTaken) left -= test.seconds;
      return isTaken;
    });
  }

  /**
   * Returns a test's distance from the mutant; smaller is nearer. Compares the folder, the imports, the importing files
   * and the names that the test mentions, then whether load may change the test's outcome.
   */
  #rankOf(test: string, { inFolder, isDirect, stem, users, names, hasTables }: Relation): number {
    const mentions = names.some((name) => this.#textOf(test).includes(name));
    const ofTables = hasTables && isIn(test, "test/arguments") && this.#timings(test) < MOST_OF_TABLES;
    const order = [
      inFolder && stemOf(test) === stem,
      inFolder && stem.split("_").includes(stemOf(test)), // tests of `lu_blocks.metal` are named lu or blocks
      inFolder && isDirect,
      (inFolder && mentions) || ofTables,
      isDirect, // many tests import common modules, such as the backend's name
      users.has(test.replace(/(?:\.\w+)?\.test\.ts$/, "")),
      inFolder,
      mentions,
      true,
    ];
    const rank = order.indexOf(true);
    return 2 * rank + (classOf(test) === undefined ? 0 : 1);
  }

  #textOf(file: string): string {
    const known = this.#texts.get(file);
    if (known !== undefined) return known;
    const text = readFileSync(join(this.#root, file), "utf8");
    this.#texts.set(file, text);
    return text;
  }
}

/** The maximum import distance. Files further away use little of the mutant's file. */
const MOST_IMPORTS = 3;

/** Returns the names of the tests for files in `src` within {@link MOST_IMPORTS} imports. */
function usersOf(distances: ReadonlyMap<string, number>): ReadonlySet<string> {
  const near = [...distances].filter(([file, distance]) => distance <= MOST_IMPORTS && isIn(file, "src"));
  return new Set(near.map(([file]) => file.replace(/^src/, "test").replace(/(?:\.\w+)?\.ts$/, "")));
}

const isIn = (file: string, folder: string): boolean => file.startsWith(`${folder}/`);

/**
 * `test` mirrors `src`: returns the folders of tests that mirror a file's folder, or the nearest parent that has tests.
 */
function mirrorsOf(file: string, tests: readonly string[]): string[] {
  const mirrored = dirname(file.replace(/^(?:src|native\/cpu|kernels)\//, ""));
  for (let folder = mirrored; folder !== "."; folder = dirname(folder)) {
    const mirrors = [`test/${folder}`, `test/ops/${folder}`].filter((each) => tests.some((test) => isIn(test, each)));
    if (mirrors.length > 0) return mirrors;
  }
  return [];
}

const stemOf = (file: string): string => basename(file).split(".", 1)[0];

/** Whether a test has only cases of the other backend, which do not run the file. */
const isOfOther = (file: string, test: string): boolean =>
  file.startsWith("native/cpu/")
    ? test.endsWith(".metal.test.ts") || isIn(test, "test/backend/metal")
    : file.startsWith("kernels/") && isIn(test, "test/backend/cpu");

/** Tests of argument tables that take at most this many seconds run early; the longest makes every hostile call. */
const MOST_OF_TABLES = 15;

/**
 * Returns the name that tests have for the function of C++ or a kernel that holds a line: `logSigmoid` for
 * `log_sigmoid`. It begins at the start of a line.
 */
function functionsAt(file: string, source: string, line: number): string[] {
  if (file.endsWith(".ts")) return [];
  const above = source.split("\n").slice(0, line);
  const found = above.findLast((text) => /^(?! *(?:return|else|if|for|while|switch)\b)\S.*\b[a-z]\w*\(/.test(text));
  const name = /\b([a-z]\w*)\(/.exec(found ?? "")?.[1]?.replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase());
  return name !== undefined && name.length >= LEAST_NAME ? [name] : [];
}

/** Shorter names occur in every file. */
const LEAST_NAME = 4;

/**
 * Returns the names by which tests can use a file: the exports of TypeScript, or the name of a kernel's or C++ file.
 */
function exportedNames(file: string, source: string): string[] {
  if (!file.endsWith(".ts")) return [stemOf(file)].filter(({ length }) => length >= LEAST_NAME);
  const { module } = parseSync(file, source);
  return module.staticExports
    .flatMap(({ entries }) => entries)
    .flatMap(({ exportName, isType }) => (isType || !exportName.name ? [] : [exportName.name]))
    .filter(({ length }) => length >= LEAST_NAME);
}
