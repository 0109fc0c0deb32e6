/** Data sets that are joined or have no length, and indices drawn by weights. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { ArgumentError, DataError, data, type Tensor } from "../../src/index.ts";

const valuesOf = async (loader: data.DataLoader<number>): Promise<number[]> =>
  (await Array.fromAsync(loader)).flatMap((batch) => (batch as Tensor).toArray() as number[]);

describe("ConcatDataset", () => {
  test("ConcatDataset has the items of all, in order, with their context", () => {
    const lists = fc.array(fc.array(fc.integer(), { maxLength: 5 }), { maxLength: 6 });
    fc.assert(
      fc.property(lists, (parts) => {
        const seen: unknown[] = [];
        const sets = parts.map((part) => ({
          length: part.length,
          get(index: number, context?: data.ItemContext) {
            seen.push(context);
            return part[index];
          },
        }));
        const all = new data.ConcatDataset(sets);
        const context = { epoch: 3, seed: 5n };
        expect(all.length).toBe(parts.flat().length);
        expect(Array.from({ length: all.length }, (_, at) => all.get(at, context))).toEqual(parts.flat());
        expect(seen).toEqual(parts.flat().map(() => context));
        for (const index of [-1, all.length, 0.5]) expect(() => all.get(index)).toThrow(ArgumentError);
      }),
    );
  });
});

describe("IterableDataset", () => {
  const counting = (length: number, options?: data.IterableDatasetOptions) =>
    new data.IterableDataset(function* () {
      for (let at = 0; at < length; at++) yield at;
    }, options);

  test("IterableDataset is opened in each epoch, with its number and a different seed", async () => {
    const contexts: data.ItemContext[] = [];
    const set = new data.IterableDataset((context) => {
      contexts.push(context);
      return [context.epoch, 10];
    });
    const loader = new data.DataLoader(set, { batchSize: 2, seed: 4 });
    expect([await valuesOf(loader), await valuesOf(loader)]).toEqual([
      [0, 10],
      [1, 10],
    ]);
    expect(new Set(contexts.map(({ seed }) => seed)).size).toBe(2);
    const again = new data.DataLoader(set, { batchSize: 2, seed: 4 });
    await valuesOf(again);
    expect(contexts[2]).toEqual(contexts[0]);
  });

  test("a buffer returns each item once, in an order of seed and epoch, and never before it was read", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(60), fc.nat(70), fc.nat(1000), async (length, shuffleBuffer, seed) => {
        const loader = () => new data.DataLoader(counting(length, { shuffleBuffer }), { batchSize: 3, seed });
        const [one, two] = [loader(), loader()];
        const first = await valuesOf(one);
        expect(first.toSorted((a, b) => a - b)).toEqual([...Array(length).keys()]);
        expect(await valuesOf(two)).toEqual(first);
        for (const [at, value] of first.entries()) expect(value).toBeLessThanOrEqual(at + Math.max(1, shuffleBuffer));
        const second = await valuesOf(one);
        const resumed = loader().setState({ epoch: 1, batch: 1, seed: BigInt(seed) });
        expect(await valuesOf(resumed)).toEqual(second.slice(3));
        if (length > 20 && shuffleBuffer > 10) expect(second).not.toEqual(first);
      }),
      { numRuns: 50 },
    );
  });

  test("the loop throws if the function returns no iterable", async () => {
    const set = new data.IterableDataset(() => 5 as never);
    await expect(Array.fromAsync(new data.DataLoader(set))).rejects.toThrow(DataError);
  });
});

describe("weightedRandomSampler", () => {
  const weights = [3, 0, 1, 0.5, 2.5, 1e-3, 0];
  const total = weights.reduce((sum, weight) => sum + weight, 0);

  /**
   * Computes Pearson's statistic of counts, and whether it is below the 99.9 % quantile (Wilson and Hilferty's
   * formula).
   */
  function expectDistribution(counts: readonly number[], probabilities: readonly number[]): void {
    const drawn = counts.reduce((sum, count) => sum + count, 0);
    const possible = [...probabilities.keys()].filter((at) => probabilities[at] > 0);
    for (const [at, count] of counts.entries()) if (probabilities[at] === 0) expect(count).toBe(0);
    const statistic = possible.reduce((sum, at) => {
      const expected = drawn * probabilities[at];
      return sum + (counts[at] - expected) ** 2 / expected;
    }, 0);
    const freedom = possible.length - 1;
    expect(statistic).toBeLessThan(freedom * (1 - 2 / (9 * freedom) + 3.0902 * Math.sqrt(2 / (9 * freedom))) ** 3);
  }

  test("indices are drawn with probabilities proportional to the weights", () => {
    const counts = weights.map(() => 0);
    for (const at of data.weightedRandomSampler(weights, { count: 100_000 })(0, 7n)) counts[at]++;
    expectDistribution(
      counts,
      weights.map((weight) => weight / total),
    );
  });

  test("without replacement, draws each next index from those that are left", () => {
    const own = [3, 0, 1, 2];
    const sum = 6;
    const pairs = own.flatMap((_, a) => own.map((_, b) => [a, b] as const)).filter(([a, b]) => a !== b);
    const probabilities = pairs.map(([a, b]) => (own[a] / sum) * (own[b] / (sum - own[a])));
    const counts = pairs.map(() => 0);
    const sampler = data.weightedRandomSampler(own, { count: 2, replacement: false });
    for (let epoch = 0; epoch < 20_000; epoch++) {
      const [first, second] = [...sampler(epoch, 11n)];
      counts[pairs.findIndex(([a, b]) => a === first && b === second)]++;
    }
    expectDistribution(counts, probabilities);
  });

  test("draws depend on the seed, the epoch, and the ratios of the weights", () => {
    const drawn = (epoch: number, seed: bigint, factor = 1) => [
      ...data.weightedRandomSampler(weights.map((weight) => weight * factor))(epoch, seed),
    ];
    expect(drawn(2, 3n)).toEqual(drawn(2, 3n));
    expect(drawn(2, 3n)).not.toEqual(drawn(3, 3n));
    expect(drawn(2, 3n)).not.toEqual(drawn(2, 4n));
    expect(drawn(2, 3n, 2 ** 1020)).toEqual(drawn(2, 3n));
  });

  test("the sampler selects the items of a loader", async () => {
    const items = { length: 3, get: (index: number) => index };
    const sampler = data.weightedRandomSampler([0, 1, 0], { count: 4 });
    expect(await valuesOf(new data.DataLoader(items, { batchSize: 2, sampler }))).toEqual([1, 1, 1, 1]);
  });

  test.each([
    ["no weight", () => data.weightedRandomSampler([])],
    ["none above 0", () => data.weightedRandomSampler([0, 0])],
    ["a negative one", () => data.weightedRandomSampler([1, -1])],
    ["NaN", () => data.weightedRandomSampler([Number.NaN])],
    ["too many", () => data.weightedRandomSampler([1, 0, 2], { count: 3, replacement: false })],
  ])("the sampler rejects %s", (_name, call) => {
    expect(call).toThrow(ArgumentError);
  });
});
