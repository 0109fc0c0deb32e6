/** `bun run mutate`: plants mistakes in copies of the repository, and lists those that no test finds. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { packageRoot } from "../../src/core/paths.ts";
import { buildAll } from "../built.ts";
import { Failure } from "../failure.ts";
import { filesOf } from "./copy.ts";
import { Judge, type Verdict } from "./judge.ts";
import { describeChange, type Mutation } from "./mutation.ts";
import { drawMutations, languageOf, languages, type Place, readPlace } from "./sites.ts";

export interface MutateOptions {
  readonly place: Place;
  readonly seed: number;
  readonly count: number;
  /** The number of mutants of the draw to skip, because an earlier run judged them. */
  readonly skip: number;
  /** Mutants judged at once. */
  readonly jobs: number;
  /** The total of the measured times of the test files to run, in seconds. */
  readonly seconds: number;
}

/** Parses options. @throws {Failure} for an unknown option or an invalid number */
export function readMutateOptions(words: readonly string[]): MutateOptions {
  const { values, positionals } = parse(words);
  if (positionals.length > 1)
    throw new Failure(`mutate: expected one folder, file or line of a file, got ${positionals.join(" and ")}.`);
  const number = (name: Exclude<keyof MutateOptions, "place">, fallback: number, least: number) => {
    const value = Number(values[name] ?? fallback);
    if (!Number.isSafeInteger(value) || value < least)
      throw new Failure(`mutate: expected --${name} to be an integer of at least ${least}, got "${values[name]}".`);
    return value;
  };
  const place = readPlace(positionals[0] ?? "");
  return {
    place,
    seed: number("seed", 1, 0),
    count: number("count", place.line === undefined ? 20 : Number.MAX_SAFE_INTEGER, 1),
    skip: number("skip", 0, 0),
    jobs: number("jobs", 1, 1),
    seconds: number("seconds", 180, 1),
  };
}

function parse(words: readonly string[]) {
  try {
    const text = { type: "string" } as const;
    const options = { seed: text, count: text, skip: text, jobs: text, seconds: text };
    return parseArgs({ args: [...words], allowPositionals: true, options });
  } catch (error) {
    throw new Failure(`mutate: ${error instanceof Error ? error.message : error}`);
  }
}

/** A mutant and its outcome. */
export interface Judged {
  readonly mutation: Mutation;
  readonly verdict: Verdict;
}

/** Builds, so that the tests of copies have the dylibs, and mutates. */
export async function mutateCommand(words: readonly string[]): Promise<void> {
  readMutateOptions(words); // rejects wrong arguments before anything is built
  await buildAll();
  await mutate(words);
}

/** Mutates the lines of the working tree that the arguments select. */
export async function mutate(words: readonly string[], root: string = packageRoot): Promise<void> {
  const { place, seed, count, skip, jobs, seconds } = readMutateOptions(words);
  const files = (await filesOf(root)).filter((file) => languageOf(file) !== undefined);
  const drawn = drawMutations(root, files, place, seed);
  const take = (most: number): Mutation[] => {
    const taken: Mutation[] = [];
    for (let next = { done: false } as IteratorResult<Mutation>; taken.length < most && !next.done; ) {
      next = drawn.next();
      if (!next.done) taken.push(next.value);
    }
    return taken;
  };
  let queue = take(skip + 1).slice(skip); // rejects places without mutations before anything is copied
  let isChecked = false;
  console.log(`Mutating with --seed ${seed}: the tests of each mutant take up to ${seconds} s of measured time.`);
  using judge = await Judge.of(root, { seconds, jobs });
  endBySignal(judge);
  const judged: Judged[] = [];
  const running = new Set<Promise<void>>();
  const start = async (mutation: Mutation) => {
    judged.push({ mutation, verdict: await judge.judge(mutation) });
    console.log(describeJudged(root, counted(judged).length, judged.at(-1)!));
  };
  let started = skip;
  for (;;) {
    // If a mutant does not count, another one replaces it. The replacement is chosen only once this is known, so that
    // the seed alone decides which mutants are judged.
    const left = count - counted(judged).length - running.size;
    if (left > 0 && running.size < jobs && (!isChecked || queue.length === 0)) {
      queue = [...queue, ...take(Math.min(left, TOGETHER) - queue.length)];
      isChecked = true;
      await judge.checkTypes(queue);
    }
    const mutation = left > 0 && running.size < jobs ? queue.shift() : undefined;
    if (mutation) {
      const run: Promise<void> = start(mutation).finally(() => running.delete(run));
      running.add(run);
      started++;
    } else if (running.size > 0) await Promise.race(running);
    else break;
  }
  console.log(describeCounts(judged));
  if (queue.length > 0 || take(1).length > 0) console.log(`--skip ${started} goes on from here`);
  for (const file of judge.failing) console.log(`${file} fails without a mutant, and judged none`);
}

/** Mutants whose types are checked together. */
const TOGETHER = 50;

/** Removes the copies however the command ends, once the tests in them have ended. */
function endBySignal(judge: Judge): void {
  process.once("exit", () => judge[Symbol.dispose]());
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));
}

const counted = (judged: readonly Judged[]): Judged[] => judged.filter(({ verdict }) => verdict.end !== "not counted");

function describeJudged(root: string, number: number, { mutation, verdict }: Judged): string {
  const { file, line, kind } = mutation;
  const place = `${file}:${line} ${kind}`;
  if (verdict.end === "not counted") return `      ${place}: not counted: ${verdict.why}`;
  const head = `${String(number).padStart(4)}  ${verdict.end.padEnd(8)}  ${place}`;
  if (verdict.end === "killed") return `${head}\n      by ${verdict.by}`;
  const source = readFileSync(join(root, file), "utf8");
  return `${head}\n      ${describeChange(source, mutation)}\n      ran ${describeRan(verdict.ran)}`;
}

function describeRan(ran: readonly { readonly file: string; readonly seconds: number }[]): string {
  const seconds = ran.reduce((sum, each) => sum + each.seconds, 0).toFixed(0);
  return ran.length === 0 ? "no test: none reaches the file" : `${ran.length} files of ${seconds} s: ${list(ran)}`;
}

const list = (ran: readonly { readonly file: string }[], most = 8): string =>
  [...ran.slice(0, most).map(({ file }) => file), ...(ran.length > most ? ["…"] : [])].join(", ");

/** A row per language. */
export function describeCounts(judged: readonly Judged[]): string {
  const rows = languages.flatMap(({ name, files }) => {
    const ofLanguage = judged.filter(({ mutation }) => files.test(mutation.file));
    const [all, left] = [counted(ofLanguage), ofLanguage.length - counted(ofLanguage).length];
    const killed = all.filter(({ verdict }) => verdict.end === "killed").length;
    const percent = all.length === 0 ? "" : ` (${((100 * killed) / all.length).toFixed(1)} %)`;
    const uncounted = left === 0 ? "" : `, ${left} not counted`;
    return ofLanguage.length === 0
      ? []
      : [`  ${name.padEnd(12)} ${killed} of ${all.length} killed${percent}${uncounted}`];
  });
  return `\n${rows.join("\n")}`;
}
