/** The options of `bun run test`. */
import { parseArgs } from "node:util";
import { Failure } from "../failure.ts";
import { drawSeed } from "./order.ts";

/** A share of the files: `index` of `count`, from 1. */
export interface Shard {
  readonly index: number;
  readonly count: number;
}

export interface SuiteOptions {
  /** Files or folders of tests; empty for the whole suite. */
  readonly files: readonly string[];
  /** Arguments for `bun test` in addition to the files. */
  readonly bunWords: readonly string[];
  /** Every sweep in full, as in the nightly continuous integration. */
  readonly isFull: boolean;
  /** Also runs tests that passed in an earlier run of the same files. */
  readonly isAgain: boolean;
  /** Only tests that the changes of the working tree reach. */
  readonly onlyChanged: boolean;
  readonly shard: Shard | undefined;
  /** The seed of the order of test files. */
  readonly seed: number;
  /** Whether files of a whole run have the order of the seed, and not that of their paths. */
  readonly isDrawn: boolean;
}

/** @throws {Failure} for an unknown option, a malformed shard, or a choice made twice */
export function readOptions(words: readonly string[]): SuiteOptions {
  const { values, positionals } = parse(words);
  const { all = false, again = false, changed = false, shard, seed, "test-name-pattern": pattern } = values;
  const choices = [
    changed && "--changed",
    shard !== undefined && "--shard",
    positionals.length > 0 && "names of files",
  ];
  const made = choices.filter((choice) => choice !== false);
  if (pattern !== undefined && positionals.length === 0)
    throw new Failure("test: -t requires files or folders, such as `bun run test test/ops/softmax -t backward`.");
  if (made.length > 1) throw new Failure(`test: expected one choice of files, got ${made.join(" and ")}.`);
  return {
    files: positionals,
    bunWords: pattern === undefined ? [] : ["--test-name-pattern", pattern],
    isFull: all,
    isAgain: again,
    onlyChanged: changed,
    shard: shard === undefined ? undefined : shardOf(shard),
    seed: seed === undefined ? drawSeed() : seedOf(seed),
    isDrawn: all || seed !== undefined,
  };
}

function parse(words: readonly string[]) {
  try {
    return parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        again: { type: "boolean" },
        all: { type: "boolean" },
        changed: { type: "boolean" },
        seed: { type: "string" },
        shard: { type: "string" },
        "test-name-pattern": { type: "string", short: "t" },
      },
    });
  } catch (error) {
    throw new Failure(`test: ${error instanceof Error ? error.message : error}`);
  }
}

function shardOf(text: string): Shard {
  const [, index = 0, count = 0] = (/^(\d+)\/(\d+)$/.exec(text) ?? []).map(Number);
  if (index < 1 || index > count) throw new Failure(`test: expected --shard to be a share such as 1/3, got "${text}".`);
  return { index, count };
}

function seedOf(text: string): number {
  if (!/^\d{1,15}$/.test(text))
    throw new Failure(`test: expected --seed to be an integer of at least 0, got "${text}".`);
  return Number(text);
}
