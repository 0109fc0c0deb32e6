/**
 * Remembers passed tests in this clone until a file changes that they may depend on, so that a repeated run takes
 * minutes. Only outcomes that no load can change are remembered: they are a function of the files. A run reports how
 * many of its results are from an earlier one. `--again`, `--all`, shares and continuous integration use no earlier
 * results.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { runOrFail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { contentKey, contentOf } from "../content_cache.ts";
import type { Counts } from "../counts.ts";

/** The numbers of passed and skipped tests. */
export type Passed = Pick<Counts, "passed" | "skipped">;

/** Each run keeps only the outcomes that it used or added, so that the file does not grow. */
interface Kept {
  readonly outcomes: Record<string, Passed>;
  /** The gaps of backends that the tests of these files reported, one line each. */
  readonly gaps: Record<string, string>;
}

const nothing = (): Kept => ({ outcomes: {}, gaps: {} });

/** A test file, by its name. */
const isTest = (file: string): boolean => file.endsWith(".test.ts");

/** The times of tests, which affect only their order. */
const timings = "test/timings.json";

/** Tests of the repository itself, which may read any other test. */
const readsTests = (file: string): boolean => /^test\/(?:[^/]+|scripts\/.+)$/.test(file);

/** The outcomes of a clone, for its files at the time of creation. */
export class Outcomes {
  readonly #path: string;
  /** Hash of all files that are not tests. */
  readonly #others: string;
  readonly #keys: ReadonlyMap<string, string>;
  readonly #known: Kept;
  readonly #current: Kept = nothing();

  private constructor(path: string, others: string, keys: ReadonlyMap<string, string>, known: Kept) {
    this.#path = path;
    this.#others = others;
    this.#keys = keys;
    this.#known = known;
  }

  /**
   * @param options.forget whether to ignore the outcomes of earlier runs
   * @returns undefined if git does not list the files
   */
  static async open({ root = packageRoot, forget = false } = {}): Promise<Outcomes | undefined> {
    const path = join(root, "build", "suite", "outcomes.json");
    const words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    const listed = await runOrFail("Asking git for files", words, { cwd: root }).catch(() => undefined);
    if (listed === undefined) return undefined;
    const files = [...new Set(listed.output.split("\0").filter(Boolean))].sort();
    const keyOf = (paths: readonly string[], more: readonly string[] = []) =>
      contentKey([...more, ...paths.flatMap((file) => [file, contentOf(join(root, file)) ?? "no file"])]);
    const [tests, rest] = [files.filter(isTest), files.filter((file) => !isTest(file) && file !== timings)];
    const others = keyOf(rest, surroundings(root));
    const all = keyOf(tests);
    const keys = tests.map(
      (file) => [file, contentKey([others, file, readsTests(file) ? all : keyOf([file])])] as const,
    );
    return new Outcomes(path, others, new Map(keys), forget ? nothing() : readKept(path));
  }

  /** Returns the outcome of a test file, if it passed and nothing that it may depend on has changed. */
  ofFile(file: string): Passed | undefined {
    return this.#find(this.#keys.get(file));
  }

  /** Returns the outcome of a part other than TypeScript tests, such as the Swift tests. */
  ofPart(name: string): Passed | undefined {
    return this.#find(this.#keyOfPart(name));
  }

  keepFile(file: string, { passed, skipped }: Passed): void {
    const key = this.#keys.get(file);
    if (key) this.#current.outcomes[key] = { passed, skipped };
  }

  keepPart(name: string, { passed, skipped }: Passed): void {
    this.#current.outcomes[this.#keyOfPart(name)] = { passed, skipped };
  }

  /** Adds gaps that an earlier run of these files found to the gaps of this run. */
  allGaps(found: string): string {
    const lines = new Set([...(this.#known.gaps[this.#others] ?? "").split("\n"), ...found.split("\n")]);
    const all = [...lines].filter(Boolean).join("\n");
    this.#current.gaps[this.#others] = all;
    return all;
  }

  /** Writes the outcomes that this run used and added. */
  save(): void {
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(`${this.#path}.${process.pid}`, JSON.stringify(this.#current));
    renameSync(`${this.#path}.${process.pid}`, this.#path);
  }

  #keyOfPart(name: string): string {
    return contentKey([this.#others, name]);
  }

  #find(key: string | undefined): Passed | undefined {
    const found = key === undefined ? undefined : this.#known.outcomes[key];
    if (found) this.#current.outcomes[key!] = found;
    return found;
  }
}

/** Further dependencies of outcomes: the engine, the machine, and variables that a run may set. */
function surroundings(root: string): string[] {
  const variables = Object.keys(process.env).filter((name) => name.startsWith("ORCHARD_"));
  const chosen = variables.sort().map((name) => `${name}=${process.env[name]}`);
  return [Bun.version, process.platform, process.arch, root, ...chosen];
}

function readKept(path: string): Kept {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  try {
    return { ...nothing(), ...(JSON.parse(text) as Partial<Kept>) };
  } catch {
    return nothing(); // missing or damaged: everything runs
  }
}
