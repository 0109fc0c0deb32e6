/** Data sets by index, and batches of them: order, collation, resumption, items from other threads. */
import { describe, expect, test } from "bun:test";
import { ArgumentError, DataError, data, Generator, randn, ShapeError, type Tensor, tensor } from "../../src/index.ts";

const numbers = (length: number): data.Dataset<number> => ({ length, get: (index) => index });
const listOf = async <T>(batches: AsyncIterable<T>): Promise<T[]> => Array.fromAsync(batches);
const valuesOf = async (loader: data.DataLoader<number>): Promise<unknown[]> =>
  (await listOf(loader)).map((batch) => (batch as Tensor).toArray());
const url = new URL("./squares.ts", import.meta.url);

describe("DataLoader", () => {
  test("batches are in order, and the last one is smaller or left out", async () => {
    expect(await valuesOf(new data.DataLoader(numbers(5), 2))).toEqual([[0, 1], [2, 3], [4]]);
    const full = new data.DataLoader(numbers(5), { batchSize: 2, dropLast: true });
    expect(await valuesOf(full)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect([new data.DataLoader(numbers(5), 2).length, full.length]).toEqual([3, 2]);
    expect(await valuesOf(new data.DataLoader(numbers(0), 2))).toEqual([]);
  });

  test("with shuffling, every epoch has each item once, in an order that depends only on seed and epoch", async () => {
    const epochs = async (seed: number) => {
      const loader = new data.DataLoader(numbers(101), { batchSize: 7, shuffle: true, seed });
      return [(await valuesOf(loader)).flat(), (await valuesOf(loader)).flat()];
    };
    const [first, second] = await epochs(1);
    expect((first as number[]).toSorted((a, b) => a - b)).toEqual([...Array(101).keys()]);
    expect((second as number[]).toSorted((a, b) => a - b)).toEqual([...Array(101).keys()]);
    expect(first).not.toEqual(second);
    expect(await epochs(1)).toEqual([first, second]);
    expect((await epochs(2))[0]).not.toEqual(first);
  });

  test.each([0, 1, 5])("a loader resumes from a state at the right batch, with a prefetch of %i", async (prefetch) => {
    const make = () => new data.DataLoader(numbers(23), { batchSize: 4, shuffle: true, seed: 3n, prefetch });
    const loader = make();
    const whole = [...(await valuesOf(loader)), ...(await valuesOf(loader))];
    const [resumed, stopped] = [make(), make()];
    await valuesOf(stopped);
    const seen: unknown[] = [];
    for await (const batch of stopped) {
      seen.push(batch.toArray());
      if (seen.length === 2) break;
    }
    const state = { epoch: 1, batch: 2, seed: 3n };
    expect(resumed.setState(state).getState()).toEqual(state);
    expect([...seen, ...(await valuesOf(resumed))]).toEqual(whole.slice(6));
    expect([resumed.epoch, stopped.epoch]).toEqual([2, 2]);
  });

  test("inside a loop, the state points to the next batch", async () => {
    const loader = new data.DataLoader(numbers(6), { batchSize: 2, prefetch: 3 });
    const states: unknown[] = [];
    for await (const _ of loader) states.push(loader.getState().batch);
    expect([states, loader.getState()]).toEqual([[1, 2, 3], { epoch: 1, batch: 0, seed: 0n }]);
  });

  test("each item has a different seed in each epoch", async () => {
    const seen: bigint[] = [];
    const noisy = new data.MappedDataset(numbers(9), (index, { seed, epoch }) => {
      seen.push(seed);
      return randn([2], { generator: new Generator(seed) }).add(100 * index + epoch);
    });
    const run = async (shuffle: boolean) => {
      const loader = new data.DataLoader(noisy, { batchSize: 9, shuffle });
      const rows = (await listOf(loader)).concat(await listOf(loader)).map((batch) => batch.toArray() as number[][]);
      return rows.map((batch) => batch.toSorted((a, b) => a[0] - b[0]));
    };
    const [plain, shuffled] = [await run(false), await run(true)];
    expect(shuffled).toEqual(plain);
    expect(plain[0]).not.toEqual(plain[1]);
    expect(new Set(seen).size).toBe(18);
  });

  test("a sampler draws the indices of an epoch", async () => {
    const loader = new data.DataLoader(numbers(5), { batchSize: 2, sampler: (epoch) => [4, 4, epoch] });
    expect(await valuesOf(loader)).toEqual([[4, 4], [0]]);
    expect(await valuesOf(loader)).toEqual([[4, 4], [1]]);
    const wrong = new data.DataLoader(numbers(5), { sampler: () => [5] });
    await expect(valuesOf(wrong)).rejects.toThrow(
      "expected the sampler to give indices of at least 0 and below 5, got 5",
    );
  });

  test("iterables, sync and async, start again in each epoch", async () => {
    async function* slow() {
      for (const value of [1, 2, 3]) yield value;
    }
    const set = { [Symbol.asyncIterator]: slow };
    const loader = new data.DataLoader(set, 2);
    expect([await valuesOf(loader), await valuesOf(loader)]).toEqual([
      [[1, 2], [3]],
      [[1, 2], [3]],
    ]);
    expect(await valuesOf(new data.DataLoader([5, 6, 7], 2).setState({ epoch: 0, batch: 1, seed: 0n }))).toEqual([[7]]);
    expect(loader.length).toBeUndefined();
  });

  test("an item that fails ends the loop with its error, and the next epoch runs", async () => {
    let isBroken = true;
    const items = { length: 4, get: async (index: number) => (isBroken && index === 2 ? Promise.reject("no") : index) };
    const loader = new data.DataLoader(items, { batchSize: 2 });
    const seen: unknown[] = [];
    const run = async () => {
      for await (const batch of loader) seen.push(batch.toArray());
    };
    expect(await run().catch((cause: unknown) => cause)).toBe("no");
    isBroken = false;
    await run();
    expect(seen).toEqual([
      [0, 1],
      [0, 1],
      [2, 3],
    ]);
  });

  test.each([
    ["no data set", () => new data.DataLoader({} as never), ArgumentError],
    ["a batch size of 0", () => new data.DataLoader(numbers(3), 0), ArgumentError],
    [
      "shuffle and a sampler",
      () => new data.DataLoader(numbers(3), { shuffle: true, sampler: () => [] }),
      ArgumentError,
    ],
    ["an iterable to shuffle", () => new data.DataLoader([1, 2], { shuffle: true }), ArgumentError],
    ["another seed", () => new data.DataLoader(numbers(3)).setState({ epoch: 0, batch: 0, seed: 1n }), DataError],
    ["a batch too far", () => new data.DataLoader(numbers(3)).setState({ epoch: 0, batch: 4, seed: 0n }), DataError],
  ] as const)("DataLoader rejects %s", (_, call, Class) => {
    expect(call).toThrow(Class as typeof DataError);
  });
});

describe("a data set returns rows and batches", () => {
  test("a data set has the rows of tensors, by index and in batches", async () => {
    const set = new data.TensorDataset(
      tensor([
        [1, 2],
        [3, 4],
        [5, 6],
      ]),
      tensor([7n, 8n, 9n]),
    );
    expect(set.get(1).map((each) => each.toArray())).toEqual([[3, 4], 8n]);
    const [[x, y]] = (await listOf(new data.DataLoader(set, 3))) as [[Tensor, Tensor]];
    expect([x.shape, y.toArray()]).toEqual([
      [3, 2],
      [7n, 8n, 9n],
    ]);
    expect(() => new data.TensorDataset(tensor([1, 2]), tensor([1]))).toThrow(ShapeError);
    expect(() => set.get(3)).toThrow("expected an index of at least 0 and below 3, got 3");
  });

  test("a split contains every item once", () => {
    const parts = data.randomSplit(numbers(10), [0.55, 0.25, 0.2], { seed: 4 });
    expect(parts.map(({ length }) => length)).toEqual([6, 2, 2]);
    const all = parts.flatMap((part) => Array.from({ length: part.length }, (_, at) => part.get(at) as number));
    expect(all.toSorted((a, b) => a - b)).toEqual([...Array(10).keys()]);
    expect(all).not.toEqual([...Array(10).keys()]);
    expect(data.randomSplit(numbers(10), [4, 6]).map(({ length }) => length)).toEqual([4, 6]);
    expect(() => data.randomSplit(numbers(10), [4, 5])).toThrow("sizes that add up to 10, or shares that add up to 1");
  });
});

describe("collate makes batches of values", () => {
  test("numbers, bigints, booleans, texts, typed arrays, tensors, lists and objects are collated", () => {
    const item = (n: number) => ({ a: n, b: [BigInt(n), n > 1], c: `${n}`, d: Int32Array.of(n, 2), e: tensor([[n]]) });
    const { a, b, c, d, e } = data.collate([item(1), item(2)]) as unknown as Record<string, Tensor>;
    const [whole, flag] = b as unknown as [Tensor, Tensor];
    expect([a.dtype, a.toArray()]).toEqual(["float32", [1, 2]]);
    expect([whole.dtype, flag.dtype, flag.toArray()]).toEqual(["int64", "bool", [false, true]]);
    expect(c as unknown).toEqual(["1", "2"]);
    expect([d.dtype, d.shape, e.shape]).toEqual(["int32", [2, 2], [2, 1, 1]]);
  });

  test.each([
    ["kinds that differ", [1, "a"], "expected item to have one type in a batch, got number, string"],
    ["shapes that differ", [{ x: tensor([1]) }, { x: tensor([1, 2]) }], "expected item.x to have one shape and dtype"],
    ["lengths that differ", [[1], [1, 2]], "expected item to have one length in a batch, got 1 and 2"],
    ["names that differ", [{ a: 1 }, { b: 1 }], "expected item to have the same names in a batch, got a and b"],
    ["what is no data", [[new Date(0)], [new Date(0)]], "expected item[0] to be a tensor, a number, a string"],
    ["nothing", [], "expected a list of items"],
  ])("collate rejects %s", (_, items, message) => {
    expect(() => data.collate(items as unknown[])).toThrow(DataError);
    expect(() => data.collate(items as unknown[])).toThrow(message);
  });
});

describe("items can come from other threads", () => {
  interface Square {
    readonly square: number;
    readonly values: Float32Array;
    readonly seed: string;
  }

  test("items from threads are the same with any number of threads, in order", async () => {
    const run = async (workers: number) => {
      using set = await data.openWorkerDataset<Square>(url, { workers, options: { length: 11 } });
      const loader = new data.DataLoader(set, { batchSize: 4, shuffle: true, seed: 5, prefetch: 2 });
      return (await listOf(loader)).map(({ square, values, seed }) => [
        square.toArray() as number[],
        values.toArray(),
        seed,
      ]);
    };
    const one = await run(1);
    expect(one.flatMap(([squares]) => squares as number[]).toSorted((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 11 }, (_, at) => at ** 2),
    );
    expect(await run(3)).toEqual(one);
  });

  test("threads report an item's error, and continue until the loader ends them", async () => {
    const set = await data.openWorkerDataset<Square>(url, { workers: 1, options: { length: 20 } });
    expect(await set.get(13).catch((cause: unknown) => cause)).toEqual(
      expect.objectContaining({ code: "workerFailed", message: expect.stringContaining("13 is not there") }),
    );
    expect((await set.get(3)).square).toBe(9);
    const late = set.get(4);
    set.close();
    expect(await late.catch((cause: unknown) => cause)).toEqual(expect.objectContaining({ code: "closed" }));
    expect(await set.get(3).catch((cause: unknown) => cause)).toEqual(expect.objectContaining({ code: "closed" }));
  });

  test("a module that exports no data set, or is missing, is an error", async () => {
    const broken = data.openWorkerDataset(url, { options: { length: 1, isBroken: true } });
    expect(await broken.catch((cause: unknown) => cause)).toBeInstanceOf(DataError);
    const missing = data.openWorkerDataset("/nowhere/at/all.ts");
    expect(await missing.catch((cause: unknown) => cause)).toBeInstanceOf(DataError);
  });
});
