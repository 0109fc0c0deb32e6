/** Dropout of attention's probabilities: its pattern by definition, the same on every path, and its statistics. */
import { describe, expect, test } from "bun:test";
import {
  eye,
  flashAttention,
  Generator,
  grad,
  manualSeed,
  randn,
  withBackend,
  withStrict,
  zeros,
} from "../../../src/index.ts";
import { dropoutMask } from "../../../src/ops/attention/dropout_mask.ts";
import { attentionDropoutMask } from "../../../src/ops/attention/passes.ts";
import { dropoutOf } from "../../../src/ops/attention/problem.ts";
import type { PhiloxKey } from "../../../src/random/philox.ts";
import { philoxByDefinition } from "../../random/philox.oracle.ts";
import { repeats } from "../../support/repeats.ts";
import { tested } from "../run.ts";
import { on, ways } from "./run.ts";

/** Whether the pair is kept: the word of its block of 2 × 2 is compared with p · 2³². */
function isKept(p: number, key: PhiloxKey, sequence: number, head: number, i: number, j: number): boolean {
  const block = philoxByDefinition([Math.floor(j / 2), Math.floor(i / 2), head, sequence], key);
  return Number(block[2 * (i % 2) + (j % 2)]) >= Math.round(p * 2 ** 32);
}

const key: PhiloxKey = [0x12345678, 0x9abcdef0];
const backends = tested.filter((backend) => !("missing" in attentionDropoutMask.implementations[backend]));

describe.each(backends)("the mask of dropout is the same on %s", (backend) => {
  const draw = (p: number, shape: readonly number[], packed?: Parameters<typeof dropoutMask>[0]["packed"]) =>
    withStrict(true, () => withBackend(backend, () => dropoutMask({ dropout: dropoutOf(p, key), packed }, shape)));

  test.each([
    [1, 1, 1, 1],
    [2, 3, 5, 7],
    [1, 2, 33, 40],
    [2, 1, 1, 65],
    [1, 1, 64, 3],
  ])("the mask matches its definition, for [%d, %d, %d, %d]", (batch, heads, queries, keys) => {
    const expected = [];
    for (let b = 0; b < batch; b++)
      for (let h = 0; h < heads; h++)
        for (let i = 0; i < queries; i++) for (let j = 0; j < keys; j++) expected.push(isKept(0.4, key, b, h, i, j));
    expect(Array.from(draw(0.4, [batch, heads, queries, keys]).dataSync(), Boolean)).toEqual(expected);
  });

  test.each([
    [1, 70_001],
    [70_001, 1],
  ])(
    "the mask matches its definition for %d queries and %d keys, whose positions have more than 16 bits",
    (queries, keys) => {
      const kept = draw(0.4, [1, 1, queries, keys]).dataSync();
      for (let at = 500; at <= 70_000; at += 500)
        expect(kept[at] !== 0).toBe(isKept(0.4, key, 0, 0, keys === 1 ? at : 0, queries === 1 ? at : 0));
    },
  );

  test("the mask of packed sequences matches each in a separate batch", () => {
    const sequences = [
      { queryStart: 0, queries: 3, keyStart: 0, keys: 5 },
      { queryStart: 3, queries: 0, keyStart: 5, keys: 2 },
      { queryStart: 3, queries: 6, keyStart: 7, keys: 4 },
    ];
    const expected = Array.from({ length: 2 * 9 * 11 }, () => false);
    for (const [index, { queryStart, queries, keyStart, keys }] of sequences.entries())
      for (let h = 0; h < 2; h++)
        for (let i = 0; i < queries; i++)
          for (let j = 0; j < keys; j++)
            expected[(h * 9 + queryStart + i) * 11 + keyStart + j] = isKept(0.25, key, index, h, i, j);
    expect(Array.from(draw(0.25, [1, 2, 9, 11], sequences).dataSync(), Boolean)).toEqual(expected);
  });

  test.each([0.001, 0.1, 0.5, 0.9, 0.999])("the mask keeps a fraction of 1 − %d, within 4 standard errors", (p) => {
    const kept = draw(p, [2, 4, 128, 129]).dataSync();
    const count = kept.reduce((sum, value) => sum + value, 0);
    expect(Math.abs(count - kept.length * (1 - p))).toBeLessThan(4 * Math.sqrt(kept.length * p * (1 - p)));
  });

  test("neighbors in the mask are independent: of pairs of rows, columns and heads, p² are dropped together", () => {
    const [heads, rows, columns] = [4, 128, 128];
    const kept = draw(0.5, [1, heads, rows, columns]).dataSync();
    for (const step of [1, 2, 3, columns, 2 * columns, columns + 1, rows * columns]) {
      const length = kept.length - step;
      let together = 0;
      for (let at = 0; at < length; at++) together += kept[at] === 0 && kept[at + step] === 0 ? 1 : 0;
      expect(Math.abs(together - length / 4)).toBeLessThan(4 * Math.sqrt((length * 3) / 16));
    }
  });
});

describe.each(ways)("attention with dropout on $name", (way) => {
  const [heads, queries, keys] = [2, 5, 9];
  const range = (length: number) => Array.from({ length }, (_, index) => index);
  const inputs = () => {
    const generator = new Generator(8);
    const draw = (rows: number) => randn([1, heads, rows, 4], { generator, requiresGrad: true });
    return [draw(queries), draw(keys), draw(keys)] as const;
  };

  // Metal has separate kernels for few queries, one row at a time, and for many, in tiles.
  test.each([
    [5, 9],
    [21, 40],
  ])("probabilities of %d queries and %d keys are dropped by the mask, forward and backward", (queries, keys) => {
    /** The head, query and key of each probability, row-major. */
    const pairs = range(heads * queries * keys).map(
      (at) => [Math.floor(at / (queries * keys)), Math.floor(at / keys) % queries, at % keys] as const,
    );
    on(way, () => {
      const q = zeros([1, heads, queries, keys]); // equal scores: probabilities of 1 / keys
      const k = zeros([1, heads, keys, keys]);
      const v = eye(keys).reshape([1, 1, keys, keys]).expand([1, heads, keys, keys]).clone();
      v.requiresGrad = true;
      const generator = new Generator(3);
      const options = { dropout: 0.25, generator, path: way.path, returnDropoutMask: true } as const;
      const { out, dropoutMask: mask } = flashAttention(q, k, v, options);
      const own = new Generator(3).nextKey();
      const kept = pairs.map(([h, i, j]) => Number(isKept(0.25, own, 0, h, i, j)));
      expect(Array.from(mask!.dataSync())).toEqual(kept);
      const each = 1 / (0.75 * keys);
      for (const [at, value] of out.dataSync().entries()) expect(value).toBeCloseTo(kept[at] * each, 6);
      const [gradient] = grad(out, [v], { gradOutputs: [zeros(out.shape).add(1)] });
      for (const [at, value] of gradient.dataSync().entries()) {
        const [head, key] = [Math.floor(at / keys ** 2), Math.floor(at / keys) % keys];
        const column = kept.filter((_, pair) => pairs[pair][0] === head && pairs[pair][2] === key);
        expect(value).toBeCloseTo(column.reduce((sum, one) => sum + one, 0) * each, 5);
      }
    });
  });

  test("manualSeed repeats a run, and the next call draws again", () => {
    on(way, () => {
      const run = () => Array.from(flashAttention(...inputs(), { dropout: 0.5, path: way.path }).dataSync());
      manualSeed(5);
      const [first, second] = [run(), run()];
      manualSeed(5);
      expect([run(), run()]).toEqual([first, second]);
      expect(second).not.toEqual(first);
    });
  });

  test("dropout of 0 draws no random number, others draw one", () => {
    on(way, () => {
      const generator = new Generator(1);
      flashAttention(...inputs(), { dropout: 0, generator, path: way.path });
      expect(generator.getState().offset).toBe(0n);
      flashAttention(...inputs(), { dropout: 0.5, generator, path: way.path });
      expect(generator.getState().offset).toBe(1n);
    });
  });

  // Metal draws the same masks as the other backends, on which 2,000 runs are cheap.
  const seeds = way.backend === "metal" ? repeats({ usual: 150, all: 2000 }) : 2000;
  test(`the mean over ${seeds} seeds is the output without dropout, within 4 standard errors`, () => {
    on(way, () => {
      const p = 0.3;
      const [q, k, v] = inputs().map((x) => x.detach()) as unknown as ReturnType<typeof inputs>;
      const expected = flashAttention(q, k, v, { path: way.path }).dataSync();
      const sums = new Float64Array(expected.length);
      const squares = new Float64Array(expected.length);
      for (let seed = 0; seed < seeds; seed++) {
        const options = { dropout: p, generator: new Generator(seed), path: way.path } as const;
        for (const [at, value] of flashAttention(q, k, v, options).dataSync().entries()) {
          sums[at] += value;
          squares[at] += value * value;
        }
      }
      for (const [at, value] of expected.entries()) {
        const mean = sums[at] / seeds;
        const error = Math.sqrt((squares[at] / seeds - mean * mean) / seeds);
        expect(Math.abs(mean - value)).toBeLessThan(4 * error);
      }
    });
  });
});
