/** Which test files judge a mutant: those that reach its file, the nearest first, as far as the time goes. */
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseSync } from "oxc-parser";
import { distancesFrom, importersIn, reachedTests } from "../suite/changed.ts";
import { classOf } from "../suite/classes.ts";

/** A test file, and the seconds that it took when it was last measured. */
export interface TestFile {
  readonly file: string;
  readonly seconds: number;
}

/** Of a file that was never measured. */
const UNMEASURED_SECONDS = 1;

/** What a tree's tests import, read once for many mutants. */
export class Tests {
  readonly #root: string;
  readonly #importers: ReadonlyMap<string, readonly string[]>;
  readonly #milliseconds: Readonly<Record<string, number>>;
  readonly #texts = new Map<string, string>();

  constructor(root: string) {
    this.#root = root;
    this.#importers = importersIn(root);
    const timings = JSON.parse(this.#textOf("test/timings.json")) as { files: Record<string, number> };
    this.#milliseconds = timings.files;
  }

  /**
   * The test files that reach a file, the nearest first, whose measured times add up to at most `seconds`. Which they
   * are does not depend on how fast the machine is. The first is always among them.
   */
  nearest(file: string, seconds: number): TestFile[] {
    const names = exportedNames(file, this.#textOf(file));
    const distances = distancesFrom([file], this.#importers);
    const ranked = reachedTests([file], this.#root, this.#importers).map((test) => ({
      file: test,
      seconds: (this.#milliseconds[test] ?? UNMEASURED_SECONDS * 1000) / 1000,
      rank: this.#rankOf(test, file, names, distances.get(test)),
    }));
    ranked.sort((left, right) => left.rank - right.rank || left.seconds - right.seconds);
    let left = seconds;
    return ranked.filter((test, at) => {
      const isTaken = at === 0 || test.seconds <= left;
      if (isTaken) left -= test.seconds;
      return isTaken;
    });
  }

  /** Less is nearer: by imports, by names that the test mentions, and by folder, as `test` mirrors `src`. */
  #rankOf(test: string, file: string, names: readonly string[], distance = Number.POSITIVE_INFINITY): number {
    const folder = folderOf(file);
    const inFolder = isIn(test, `test/${folder}`) || isIn(test, `test/ops/${folder}`);
    const mentions = names.some((name) => this.#textOf(test).includes(name));
    const isDirect = distance === 1 || (inFolder && stemOf(test) === stemOf(file));
    const rank = isDirect ? 0 : inFolder && mentions ? 1 : inFolder ? 2 : mentions ? 3 : 4;
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

const isIn = (file: string, folder: string): boolean => file.startsWith(`${folder}/`);

/** Below `src`, `native/cpu` or `kernels`. */
const folderOf = (file: string): string => dirname(file.replace(/^(?:src|native\/cpu|kernels)\//, ""));

const stemOf = (file: string): string => basename(file).split(".", 1)[0]!;

/** Names of one or two letters are in every file. */
const LEAST_NAME = 4;

/** What tests can call of a file: the names that TypeScript exports; the name of a kernel's or C++ file. */
function exportedNames(file: string, source: string): string[] {
  if (!file.endsWith(".ts")) return [stemOf(file)].filter(({ length }) => length >= LEAST_NAME);
  const { module } = parseSync(file, source);
  return module.staticExports
    .flatMap(({ entries }) => entries)
    .flatMap(({ exportName, isType }) => (isType || !exportName.name ? [] : [exportName.name]))
    .filter(({ length }) => length >= LEAST_NAME);
}
