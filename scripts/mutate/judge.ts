/** Runs tests on a mutant. */
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { classOf } from "../suite/classes.ts";
import { checkedPaths, checkManyTypes, compileChecks, isCompiled } from "./compile.ts";
import { Copy } from "./copy.ts";
import type { Mutation } from "./mutation.ts";
import { type TestFile, Tests } from "./nearest.ts";
import { type LanguageName, languageOf } from "./sites.ts";

/** The outcome of a mutant. */
export type Verdict =
  | { readonly end: "killed"; readonly by: string }
  | { readonly end: "survived"; readonly ran: readonly TestFile[] }
  /** The mutant does not compile. */
  | { readonly end: "not counted"; readonly why: string };

export interface JudgeOptions {
  /** The total of the measured times of the test files to run, in seconds. */
  readonly seconds: number;
  /** The number of mutants judged at once. With more than one, tests that depend on the machine's load are left out. */
  readonly jobs: number;
}

/** A copy for mutants, and the languages whose build products it has. */
interface Bench {
  readonly copy: Copy;
  readonly prepared: Set<LanguageName>;
}

/** Judges mutants of a working tree, one at a time in each copy of the tree. */
export class Judge implements Disposable {
  readonly #pristine: Copy;
  readonly #benches: readonly Bench[];
  readonly #free: Bench[];
  readonly #tests: Tests;
  readonly #options: JudgeOptions;
  readonly #prepared = new Map<LanguageName, Promise<void>>();
  /** Whether a test file, or one test of it, passes without a mutant. */
  readonly #passing = new Map<string, Promise<boolean>>();
  readonly #failing = new Set<string>();
  /** For mutants whose types were checked together: why they do not compile. */
  readonly #types = new Map<Mutation, string | undefined>();

  private constructor(pristine: Copy, copies: readonly Copy[], tests: Tests, options: JudgeOptions) {
    this.#pristine = pristine;
    this.#benches = copies.map((copy) => ({ copy, prepared: new Set() }));
    this.#free = [...this.#benches];
    this.#tests = tests;
    this.#options = options;
  }

  static async of(root: string, options: JudgeOptions): Promise<Judge> {
    const [pristine, ...copies] = await Promise.all(Array.from({ length: 1 + options.jobs }, () => Copy.of(root)));
    return new Judge(pristine, copies, new Tests(root), options);
  }

  /** @throws {Error} if more than `jobs` mutants are judged at once */
  judge(mutation: Mutation): Promise<Verdict> {
    return this.#inBench((bench) => this.#judgeIn(bench, mutation));
  }

  /** Checks the types of mutants that are judged later. While it runs, it counts as one of the mutants being judged. */
  async checkTypes(mutations: readonly Mutation[]): Promise<void> {
    const typeScript = mutations.filter(({ file }) => languageOf(file)!.name === "TypeScript");
    if (typeScript.length === 0) return;
    await this.#inBench(async (bench) => {
      await this.#prepare(bench, "TypeScript", typeScript[0].file);
      for (const [mutation, why] of await checkManyTypes(bench.copy, typeScript)) this.#types.set(mutation, why);
      bench.copy.restore(checkedPaths.TypeScript, this.#pristine);
    });
  }

  async #inBench<Result>(body: (bench: Bench) => Promise<Result>): Promise<Result> {
    const bench = this.#free.pop();
    if (!bench) throw new Error(`judge: expected at most ${this.#options.jobs} mutants at once, got another`);
    try {
      return await body(bench);
    } finally {
      this.#free.push(bench);
    }
  }

  async #judgeIn(bench: Bench, mutation: Mutation): Promise<Verdict> {
    const { copy } = bench;
    const language = languageOf(mutation.file)!.name as LanguageName;
    await this.#prepare(bench, language, mutation.file);
    if (language === "C++" && !(await isCompiled(copy, mutation)))
      return { end: "not counted", why: "its line is not compiled for this machine" };
    using _ = copy.planted(mutation);
    try {
      const isChecked = this.#types.has(mutation);
      const why = isChecked ? this.#types.get(mutation) : await compileChecks[language](copy, mutation.file);
      return why === undefined ? await this.#test(copy, mutation, language) : { end: "not counted", why };
    } finally {
      copy.restore(checkedPaths[language], this.#pristine);
    }
  }

  async #prepare({ copy, prepared }: Bench, language: LanguageName, file: string): Promise<void> {
    if (prepared.has(language)) return;
    const whole = this.#prepared.get(language) ?? this.#checkPristine(language, file);
    this.#prepared.set(language, whole);
    await whole;
    copy.restore(checkedPaths[language], this.#pristine);
    prepared.add(language);
  }

  /** If the copy does not compile without a mutant, no mutant would be counted. */
  async #checkPristine(language: LanguageName, file: string): Promise<void> {
    const why = await compileChecks[language](this.#pristine, file);
    if (why !== undefined)
      throw new Failure(
        `mutate: ${file} does not compile unchanged, so no mutant of ${language} can be judged: ${why}`,
      );
  }

  async #test(copy: Copy, { file, line }: Mutation, language: LanguageName): Promise<Verdict> {
    const ran: TestFile[] = [];
    const { seconds, jobs } = this.#options;
    const nearest = this.#tests
      .nearest(file, seconds, line)
      .filter((test) => jobs === 1 || classOf(test.file) === undefined);
    for (const group of groupsOf(nearest)) {
      let left: readonly TestFile[] = group;
      while (left.length > 0) {
        const { failure } = await runTests(copy, left, language);
        if (failure === undefined) break;
        const failing = left.find((test) => test.file === failure.file) ?? left[0];
        if (await this.#isKill(copy, failing, language, failure.name)) return { end: "killed", by: failure.what };
        left = left.slice(left.indexOf(failing) + 1);
      }
      ran.push(...group.filter((test) => !this.#failing.has(test.file)));
    }
    return { end: "survived", ran };
  }

  /** A test that fails without the mutant says nothing about it; one that depends on load must fail twice. */
  async #isKill(copy: Copy, test: TestFile, language: LanguageName, name: string | undefined): Promise<boolean> {
    const passes = (await this.#passes(test, language, name)) || (name && (await this.#passes(test, language)));
    if (!passes) this.#failing.add(test.file);
    if (!passes) return false;
    if (classOf(test.file) === undefined) return true;
    return (await runTests(copy, [test], language)).failure !== undefined;
  }

  /** Whether a file passes without a mutant; for a named test, whether that test passes alone. */
  #passes(test: TestFile, language: LanguageName, name?: string): Promise<boolean> {
    const key = `${language} ${test.file} ${name ?? ""}`;
    const run = async () => {
      const { failure, isEmpty } = await runTests(this.#pristine, [test], language, name);
      return failure === undefined && !(isEmpty && name !== undefined);
    };
    const passes = this.#passing.get(key) ?? run();
    this.#passing.set(key, passes);
    return passes;
  }

  /** Test files that fail without a mutant, and were skipped. */
  get failing(): string[] {
    return [...this.#failing];
  }

  [Symbol.dispose](): void {
    this.#pristine[Symbol.dispose]();
    for (const { copy } of this.#benches) copy[Symbol.dispose]();
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

/** The first failure and its file. */
interface FirstFailure {
  readonly file: string | undefined;
  /** The test's name, as `bun test` selects it; undefined if no test has run. */
  readonly name: string | undefined;
  readonly what: string;
}

interface Outcome {
  /** The first failure; undefined if everything passed. */
  readonly failure: FirstFailure | undefined;
  /** Whether the pattern skipped every test. */
  readonly isEmpty: boolean;
}

/** @param name runs only the test of this name */
async function runTests(
  copy: Copy,
  tests: readonly TestFile[],
  language: LanguageName,
  name?: string,
): Promise<Outcome> {
  const pattern = name === undefined ? patterns[language] : `^${RegExp.escape(name)}$`;
  const files = tests.map(({ file }) => `./${file}`);
  const words = pattern === undefined ? [] : ["--test-name-pattern", pattern];
  const expected = tests.reduce((sum, { seconds }) => sum + seconds, 0);
  const command = [process.execPath, "test", "--bail=1", ...words, ...files];
  const environment = { ORCHARD_REPORT: join(copy.root, "report") };
  const { status, output, isOver } = await copy.run(command, 30 + 10 * expected, environment);
  const isEmpty = /^error: regex .* matched 0 tests\./m.test(output);
  const isPassed = (status === 0 || isEmpty) && !isOver;
  return { failure: isPassed ? undefined : firstFailure(output, isOver), isEmpty };
}

/** The failure that a run of tests has printed first. */
export function firstFailure(output: string, isOver = false): FirstFailure {
  const before = output.split(/^\(fail\) |^# Unhandled error/m, 1)[0];
  const file = [...before.matchAll(/^(test\/\S+\.test\.ts):$/gm)].at(-1)?.[1];
  const name = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(output)?.[1];
  const error = /^error: (.*)$/m.exec(output)?.[1];
  const what = isOver ? "the tests do not end" : (name ?? error ?? "the tests end with a signal");
  return {
    file,
    name: isOver ? undefined : name?.replaceAll(" > ", " "),
    what: file === undefined ? what : `${file}: ${what}`,
  };
}
