/** The examples of a run, split into training and held-out examples. */
import { DataError } from "../../core/errors.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import { type Filling, TrainingExamples } from "./batches.ts";
import type { Written } from "./chats.ts";
import type { Encoder, Example } from "./examples.ts";

/** Statistics of the files. */
export interface ExamplesReport {
  readonly lines: number;
  readonly examples: number;
  readonly heldOut: number;
  readonly tokens: number;
  /** Number of tokens to train on. */
  readonly targets: number;
  /** The bytes of the tokens to train on. */
  readonly targetBytes: number;
  /** Number of examples truncated to the context. */
  readonly truncated: number;
  /** Number of examples without targets within the context, which are dropped. */
  readonly dropped: number;
}

export interface ExampleDataset {
  readonly train: TrainingExamples;
  readonly heldOut: readonly Example[];
  readonly report: ExamplesReport;
  /** The first held-out example, or the first training example if none are held out. */
  readonly first: Example;
}

interface DatasetOptions extends Filling {
  readonly heldOut: number;
  readonly seed: number;
}

/** Encodes and splits the examples. @throws {DataError} with the line; also for files without targets. */
export async function openExamples(
  written: readonly Written[],
  encoder: Encoder,
  tokenizer: PretrainedTokenizer,
  { heldOut: fraction, seed, ...filling }: DatasetOptions,
): Promise<ExampleDataset> {
  const all: Example[] = [];
  let [truncated, dropped] = [0, 0];
  for (const [line, record] of written.entries()) {
    if (line % 256 === 255) await Bun.sleep(0); // lets timers and signal handlers run
    for (const example of encoder.examplesOf(record)) {
      const cut = cutTo(example, filling.context);
      if (cut !== example) truncated++;
      if (cut.isTarget.indexOf(1, 1) < 0) dropped++;
      else all.push(cut);
    }
  }
  if (all.length === 0)
    throw new DataError(
      "train",
      "nothingToLearn",
      `expected an answer within ${filling.context} tokens, got none in ${written.length} lines`,
    );
  const { train, heldOut, fingerprint } = split(all, fraction);
  const targets = all.flatMap(({ tokens, isTarget }) => [...tokens].filter((_, at) => at > 0 && isTarget[at] === 1));
  const report = {
    lines: written.length,
    examples: all.length,
    heldOut: heldOut.length,
    truncated,
    dropped,
    tokens: all.reduce((sum, { tokens }) => sum + tokens.length, 0),
    targets: targets.length,
    targetBytes: targets.reduce((sum, token) => sum + tokenizer.bytesOf(token).length, 0),
  };
  const position = `${fingerprint}/${filling.context}/${filling.packing}`;
  const stream = new TrainingExamples(train, filling, BigInt(seed), position);
  return { train: stream, heldOut, report, first: heldOut[0] ?? train[0] };
}

/** Truncates an example to the context length, plus one token as the target of the last position. */
function cutTo(example: Example, context: number): Example {
  if (example.tokens.length <= context + 1) return example;
  const { tokens, isTarget } = example;
  return { tokens: tokens.slice(0, context + 1), isTarget: isTarget.slice(0, context + 1) };
}

/**
 * Holds out the examples with the lowest hashes, independent of the order of lines and files. Equal examples stay
 * together, so that none is in both sets.
 */
function split(all: readonly Example[], fraction: number) {
  const hashed = all.map((example) => ({
    example,
    hash: Bun.hash(example.tokens, BigInt(Bun.hash(example.isTarget))),
  }));
  const distinct = [...new Set(hashed.map(({ hash }) => hash))].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const count = fraction > 0 && distinct.length > 1 ? Math.max(1, Math.floor(distinct.length * fraction)) : 0;
  const held = new Set(distinct.slice(0, count));
  const of = (isHeld: boolean) => hashed.filter(({ hash }) => held.has(hash) === isHeld).map(({ example }) => example);
  const fingerprint = new Bun.CryptoHasher("sha256");
  for (const { hash } of hashed) fingerprint.update(`${hash} ${held.has(hash)}\n`);
  return { train: of(false), heldOut: of(true), fingerprint: fingerprint.digest("hex").slice(0, 16) };
}
