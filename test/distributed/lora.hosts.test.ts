/** Fine-tuning a model on several ranks gives the losses of one process, and the same adapter on all ranks. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { writeModel } from "../serve/folder.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { openMpi, programWords, resultsIn, runProgram, saidBy, spawn } from "./launch.ts";

const { path: folder } = testFolder("lora-ranks");
type Results = Readonly<Record<string, { readonly losses: readonly number[]; readonly adapter: number[][] }>>;
/** Sums of float32 numbers in another order, whose differences grow over four steps of AdamW. */
const CLOSE = 1e-4;

/** Chats of different lengths: parts of a batch have different numbers of trained tokens. */
const chat = (at: number) => ({
  messages: [
    { role: "user", content: `${"the ".repeat((at % 3) + 1)}${at}` },
    { role: "assistant", content: `${at} is ${"f(x) ".repeat(at % 5)}.` },
  ],
});

let alone: Results;
beforeAll(async () => {
  await writeModel(join(folder, "model"));
  const lines = Array.from({ length: 24 }, (_, at) => JSON.stringify(chat(at)));
  await Bun.write(join(folder, "chats.jsonl"), lines.join("\n"));
  const words = [...bunWords, ...programWords("lora.ts", folder)];
  const { text, status } = await saidBy(spawn({ words, environment: {} }));
  expect([status, status === 0 ? "" : text]).toEqual([0, ""]);
  [alone] = resultsIn<Results>(folder, 1) as [Results];
});

const differ = (a: readonly number[], b: readonly number[]): number =>
  a.length === b.length ? Math.max(...a.map((value, at) => Math.abs(value - b[at]))) : Infinity;

const RANKS = 3;

test.skipIf(openMpi.missing !== undefined)(
  "ranks have the same losses as one process, and the same adapter bit by bit",
  async () => {
    const { ranks, text, status } = await runProgram<Results>(openMpi, RANKS, "lora.ts", folder);
    expect([status, status === 0 ? "" : text]).toEqual([0, ""]);
    expect(ranks).toHaveLength(RANKS);
    for (const [name, { losses, adapter }] of Object.entries(ranks[0])) {
      for (const other of ranks) expect(other[name].adapter).toEqual(adapter);
      expect(losses).toHaveLength(4);
      expect(Math.max(...adapter[1].map(Math.abs))).toBeGreaterThan(100 * CLOSE); // the second matrix began with zeros
      expect(differ(losses, alone[name].losses)).toBeLessThan(CLOSE);
      expect(differ(adapter.flat(), alone[name].adapter.flat())).toBeLessThan(CLOSE);
    }
  },
);
