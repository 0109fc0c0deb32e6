/** Runs tests on a mutant. */
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { classOf } from "../suite/classes.ts";
import { compileChecks, dylibPaths } from "./compile.ts";
import { Copy } from "./copy.ts";
import type { Mutation } from "./mutation.ts";
import { type TestFile, Tests } from "./nearest.ts";
import { type LanguageName, languageOf } from "./sites.ts";

/** The outcome of a mutant. */
export type Verdict =
  | { readonly end: "killed"; readonly by: string }
  | { readonly end: "survived"; readonly ran: readonly TestFile[] }
  /** It does not compile. */
  | { readonly end: "not counted"; readonly why: string };

export interface JudgeOptions {
  /** The total of the measured times of the test files to run, in seconds. */
  readonly seconds: number;
}

/** Judges mutants of a working tree, one at a time. */
export class Judge implements Disposable {
  readonly #pristine: Copy;
  readonly #mutated: Copy;
  readonly #tests: Tests;
  readonly #seconds: number;
  readonly #prepared = new Set<LanguageName>();
  /** Whether a test file passes without a mutant. */
  readonly #passing = new Map<string, boolean>();

  private constructor(pristine: Copy, mutated: Copy, tests: Tests, { seconds }: JudgeOptions) {
    this.#pristine = pristine;
    this.#mutated = mutated;
    this.#tests = tests;
    this.#seconds = seconds;
  }

  static async of(root: string, options: JudgeOptions): Promise<Judge> {
    const pristine = await Copy.of(root);
    return new Judge(pristine, await Copy.of(root), new Tests(root), options);
  }

  async judge(mutation: Mutation): Promise<Verdict> {
    const language = languageOf(mutation.file)!.name as LanguageName;
    await this.#prepare(language, mutation.file);
    using _ = this.#mutated.planted(mutation);
    try {
      const why = await compileChecks[language](this.#mutated, mutation.file);
      return why === undefined ? await this.#test(mutation, language) : { end: "not counted", why };
    } finally {
      if (language === "C++") this.#mutated.restore(dylibPaths, this.#pristine);
    }
  }

  /** If the copy does not compile without a mutant, no mutant would be counted. */
  async #prepare(language: LanguageName, file: string): Promise<void> {
    if (this.#prepared.has(language)) return;
    const why = await compileChecks[language](this.#pristine, file);
    if (why !== undefined)
      throw new Failure(
        `mutate: ${file} does not compile unchanged, so no mutant of ${language} can be judged: ${why}`,
      );
    if (language === "C++") this.#mutated.restore(dylibPaths, this.#pristine);
    this.#prepared.add(language);
  }

  async #test({ file }: Mutation, language: LanguageName): Promise<Verdict> {
    const ran: TestFile[] = [];
    for (const group of groupsOf(this.#tests.nearest(file, this.#seconds))) {
      let left: readonly TestFile[] = group;
      while (left.length > 0) {
        const failure = await runTests(this.#mutated, left, language);
        if (failure === undefined) break;
        const failing = left.find((test) => test.file === failure.file) ?? left[0]!;
        if (await this.#isKill(failing, language)) return { end: "killed", by: failure.what };
        left = left.slice(left.indexOf(failing) + 1);
      }
      ran.push(...group.filter((test) => this.#passing.get(test.file) !== false));
    }
    return { end: "survived", ran };
  }

  /** A test that fails without the mutant says nothing about it; one that depends on load must fail twice. */
  async #isKill(test: TestFile, language: LanguageName): Promise<boolean> {
    if (!this.#passing.has(test.file))
      this.#passing.set(test.file, (await runTests(this.#pristine, [test], language)) === undefined);
    if (!this.#passing.get(test.file)) return false;
    return classOf(test.file) === undefined || (await runTests(this.#mutated, [test], language)) !== undefined;
  }

  /** Test files that fail without a mutant, and were skipped. */
  get failing(): string[] {
    return [...this.#passing].filter(([, passes]) => !passes).map(([file]) => file);
  }

  [Symbol.dispose](): void {
    this.#pristine[Symbol.dispose]();
    this.#mutated[Symbol.dispose]();
  }
}

/**
 * One process runs files of about this many seconds, which saves process starts without delaying the end of mutants
 * that fail early.
 */
const GROUP_SECONDS = 15;

/** Groups files in order; those of a class that depends on load run separately. */
export function groupsOf(tests: readonly TestFile[]): TestFile[][] {
  const groups: TestFile[][] = [];
  let seconds = Number.POSITIVE_INFINITY;
  for (const test of tests) {
    const isAlone = classOf(test.file) !== undefined;
    if (isAlone || seconds + test.seconds > GROUP_SECONDS) {
      groups.push([]);
      seconds = 0;
    }
    groups.at(-1)!.push(test);
    seconds = isAlone ? Number.POSITIVE_INFINITY : seconds + test.seconds;
  }
  return groups;
}

/** Tests of one backend have its name in theirs. */
const patterns: Readonly<Record<LanguageName, string | undefined>> = {
  TypeScript: undefined,
  "C++": String.raw`^(?!.*\b(?:metal|reference)\b)`,
  kernels: String.raw`^(?!.*\b(?:cpu|reference)\b)`,
};

/** The first failure and its file; undefined if everything passed. */
interface FirstFailure {
  readonly file: string | undefined;
  readonly what: string;
}

async function runTests(
  copy: Copy,
  tests: readonly TestFile[],
  language: LanguageName,
): Promise<FirstFailure | undefined> {
  const pattern = patterns[language];
  const files = tests.map(({ file }) => `./${file}`);
  const words = pattern === undefined ? [] : ["--test-name-pattern", pattern];
  const expected = tests.reduce((sum, { seconds }) => sum + seconds, 0);
  const command = [process.execPath, "test", "--bail=1", ...words, ...files];
  const environment = { ORCHARD_REPORT: join(copy.root, "report") };
  const { status, output, isOver } = await copy.run(command, 120 + 20 * expected, environment);
  return status === 0 && !isOver ? undefined : firstFailure(output, isOver);
}

/** A run whose pattern skips every test did not fail. */
export function firstFailure(output: string, isOver = false): FirstFailure | undefined {
  if (/^error: regex .* matched 0 tests\./m.test(output)) return undefined;
  const before = output.split(/^\(fail\) |^# Unhandled error/m, 1)[0]!;
  const file = [...before.matchAll(/^(test\/\S+\.test\.ts):$/gm)].at(-1)?.[1];
  const name = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(output)?.[1];
  const error = /^error: (.*)$/m.exec(output)?.[1];
  const what = isOver ? "the tests do not end" : (name ?? error ?? "the tests end with a signal");
  return { file, what: file === undefined ? what : `${file}: ${what}` };
}
