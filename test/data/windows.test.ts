/** Batches: their windows and order, and that a run resumes at its exact position. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { ArgumentError, DataError } from "../../src/core/errors.ts";
import { data, io } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const root = testFolder("windows");
const CONTEXT = 4;
let made = 0;

/** A data set of this many tokens whose n-th token is n. */
async function counting(tokens: number, options: Partial<data.TextDatasetOptions> = {}): Promise<data.TextDataset> {
  const path = root.file(`${made++}.txt`);
  writeFileSync(path, "x".repeat(made));
  const tokenizer = {
    name: `counting ${tokens}`,
    vocabularySize: tokens,
    separator: tokens - 1,
    encode: () => Array.from({ length: tokens - 1 }, (_, at) => at),
  };
  return data.openTextDataset({
    paths: path,
    tokenizer: tokenizer as never as data.Tokenizer,
    contextLength: CONTEXT,
    heldOut: 0,
    cacheFolder: root.file("cache"),
    ...options,
  });
}

const rows = ({ x }: data.Batch) => x.toArray() as number[][];
/** The first tokens of the next windows. */
const starts = (train: data.TrainingWindows, count: number) => rows(train.next(count)).map(([first]) => first);

describe("windows for training are pieces of the text", () => {
  test("windows are int32 [batch, context], and y is x shifted by one", async () => {
    const { train } = await counting(103);
    const { x, y } = train.next(5);
    expect([x.dtype, x.shape, y.dtype, y.shape]).toEqual(["int32", [5, CONTEXT], "int32", [5, CONTEXT]]);
    for (const row of rows({ x, y })) expect(row).toEqual(Array.from({ length: CONTEXT }, (_, at) => row[0] + at));
    expect([...y.dataSync()]).toEqual([...x.dataSync()].map((token) => token + 1));
  });

  test("an epoch has each window of a grid once, in random order, and the grid shifts", async () => {
    const { train } = await counting(1003);
    const shifts = new Set<number>();
    for (let epoch = 0; epoch < 12; epoch++) {
      expect(train.getState()).toMatchObject({ index: epoch === 0 ? 0 : train.windowCount });
      const first = starts(train, 1)[0]; // this call begins the epoch
      const all = [first, ...starts(train, train.windowCount - 1)];
      const sorted = all.toSorted((a, b) => a - b);
      const shift = sorted[0];
      shifts.add(shift);
      expect(shift).toBeLessThan(CONTEXT);
      expect(sorted).toEqual(Array.from({ length: train.windowCount }, (_, at) => shift + at * CONTEXT));
      expect(train.windowCount).toBe(Math.floor((1003 - 1 - shift) / CONTEXT));
      expect(all).not.toEqual(sorted);
      expect(train.getState().epoch).toBe(epoch);
    }
    expect(shifts).toEqual(new Set([0, 1, 2, 3]));
  });

  test("windows have the same order for the same seed and epoch, and different orders otherwise", async () => {
    const orders = await Promise.all(
      [0, 1, 0].map(async (seed) => {
        const { train } = await counting(203, { seed });
        return [starts(train, train.windowCount), starts(train, 20)].map(String);
      }),
    );
    expect(orders[0]).toEqual(orders[2]);
    expect(new Set(orders.flat()).size).toBe(4);
  });

  test("the shortest possible text has one window", async () => {
    const { train } = await counting(CONTEXT + 1);
    expect(rows(train.next(3))).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2, 3],
      [0, 1, 2, 3],
    ]);
  });

  test("after setState(), the next windows are those that would have followed, for batches of any size", async () => {
    const { train } = await counting(97, { seed: 7 });
    const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(sizes, sizes, async (before, after) => {
        for (const size of before) train.next(size);
        const state = train.getState();
        const expected = after.map((size) => rows(train.next(size)));
        const resumed = await counting(97, { seed: 7 });
        expect(resumed.train.setState(state)).toBe(resumed.train);
        expect(after.map((size) => rows(resumed.train.next(size)))).toEqual(expected);
      }),
      { numRuns: 15 },
    );
  });

  test("windows resume from a checkpoint", async () => {
    const { train } = await counting(97);
    train.next(40);
    await io.saveCheckpoint(root.file("run"), { model: {}, step: 1, data: train.getState() });
    const expected = rows(train.next(9));
    const { data: position } = await io.loadCheckpoint<{ data: data.DataPosition }>(root.file("run"));
    const again = (await counting(97)).train.setState(position!);
    expect(rows(again.next(9))).toEqual(expected);
  });

  test("a position in other data is rejected", async () => {
    const { train } = await counting(97);
    const state = train.getState();
    for (const other of [
      await counting(98),
      await counting(97, { seed: 1 }),
      await counting(97, { contextLength: 5 }),
      await counting(97, { heldOut: 0.2 }),
    ])
      expect(() => other.train.setState(state)).toThrow(DataError);
    const context = await counting(97, { contextLength: 5 });
    expect(() => context.train.setState(state)).toThrow(/context 5, seed 0, got tokens [0-9a-f]{8}, context 4, seed 0/);
    for (const wrong of [{ index: -1 }, { index: 25 }, { epoch: 0.5 }])
      expect(() => train.setState({ ...state, ...wrong })).toThrow("there is no window");
    expect(train.getState()).toEqual(state);
  });

  test("an empty batch is rejected", async () => {
    const { train } = await counting(97);
    for (const size of [0, 1.5, -1]) expect(() => train.next(size)).toThrow(ArgumentError);
  });
});

describe("windows for validation cover the held-out text", () => {
  test("held-out windows are all returned in order, the last batch smaller, the same every time", async () => {
    const { heldOut, report } = await counting(203, { heldOut: 0.5 });
    const first = report.trainTokens;
    expect([heldOut.tokenCount, heldOut.windowCount]).toEqual([102, 25]);
    for (let time = 0; time < 2; time++) {
      const batches = [...heldOut.batches(10)];
      expect(batches.map(({ x }) => x.shape[0])).toEqual([10, 10, 5]);
      expect(batches.flatMap(rows).map(([start]) => start)).toEqual(
        Array.from({ length: 25 }, (_, at) => first + at * CONTEXT),
      );
      for (const { x, y } of batches) expect([...y.dataSync()]).toEqual([...x.dataSync()].map((token) => token + 1));
    }
    expect([...heldOut.batches(10, 12)].map(({ x }) => x.shape[0])).toEqual([10, 2]);
    expect(() => [...heldOut.batches(0)]).toThrow(ArgumentError);
  });
});
