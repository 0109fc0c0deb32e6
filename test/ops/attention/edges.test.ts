/** Rows that attend to nothing, masked operands that are not finite, sizes of 0, long sequences. */
import { describe, expect, test } from "bun:test";
import {
  detectAnomaly,
  type FlashAttentionOptions,
  flashAttention,
  Generator,
  grad,
  ones,
  randn,
  slice,
  sum,
  type Tensor,
  tensor,
  zeros,
} from "../../../src/index.ts";
import { isExhaustive } from "../../support/repeats.ts";
import { on, type Way, ways } from "./run.ts";

const generator = new Generator(4);
const parameter = (...shape: number[]) => randn(shape, { generator, requiresGrad: true });
const numbers = (x: Tensor) => Array.from(x.dataSync(), Number);

/** Output and gradients of a call, with random cotangents. */
function results(
  way: Way,
  [q, k, v]: readonly [Tensor, Tensor, Tensor],
  options: FlashAttentionOptions,
  extra: Tensor[] = [],
) {
  return on(way, () => {
    const out = flashAttention(q, k, v, { ...options, path: way.path } as object);
    const gradOutputs = [randn(out.shape, { generator: new Generator(9) })];
    return [out, ...grad(out, [q, k, v, ...extra], { gradOutputs })].map(numbers);
  });
}

/** A copy with some rows (along the last axis but one) filled. */
function withRows(x: Tensor, rows: readonly number[], value: number): Tensor {
  const [count, width] = [x.shape.at(-2)!, x.shape.at(-1)!];
  const values = numbers(x).map((own, at) => (rows.includes(Math.floor(at / width) % count) ? value : own));
  return tensor(values, { dtype: x.dtype as "float32", shape: x.shape, requiresGrad: true });
}

const masks: Readonly<Record<string, FlashAttentionOptions>> = {
  "a mask": { mask: tensor([true, false, true, true, false, true, true]) },
  "a bias of -∞": { bias: tensor([0, -Infinity, 0.5, 0, -Infinity, 0, 1]) },
  "a mask and softcap": { mask: tensor([true, false, true, true, false, true, true]), softcap: 2 },
  "a mask and a sink": { mask: tensor([true, false, true, true, false, true, true]), sinks: tensor([0.3]) },
  "a mask and dropout": { mask: tensor([true, false, true, true, false, true, true]), dropout: 0.4 },
};

describe.each(ways)("attention with infinite and missing operands on $name", (way) => {
  describe.each([Number.NaN, Infinity, -Infinity])("masked keys and values of %d have no effect", (loud) => {
    test.each(Object.keys(masks))("masked keys and values have no effect, masked by %s", (name) => {
      const [q, k, v] = [parameter(2, 1, 5, 8), parameter(2, 1, 7, 8), parameter(2, 1, 7, 3)];
      const options = () => ({ ...masks[name], generator: new Generator(2) });
      const quiet = results(way, [q, withRows(k, [1, 4], 0), withRows(v, [1, 4], 0)], options());
      const noisy = results(way, [q, withRows(k, [1, 4], loud), withRows(v, [1, 4], loud)], options());
      expect(noisy).toEqual(quiet);
      expect(quiet.flat().every(Number.isFinite)).toBe(true);
    });

    test("keys and values have no effect on queries that do not attend to them", () => {
      const [q, k, v] = [parameter(1, 2, 9, 8), parameter(1, 2, 9, 8), parameter(1, 2, 9, 8)];
      const loudly = [q, withRows(k, [6], loud), withRows(v, [6], loud)] as const;
      const before = (x: Tensor) => slice(x, { dim: 2, end: 6 });
      const outOf = (inputs: readonly [Tensor, Tensor, Tensor]) => {
        const out = before(flashAttention(...inputs, { causal: true, path: way.path }));
        const gradOutputs = [randn(out.shape, { generator: new Generator(9) })];
        return [out, before(grad(out, [inputs[0]], { gradOutputs })[0])].map(numbers);
      };
      expect(on(way, () => outOf(loudly))).toEqual(on(way, () => outOf([q, k, v])));
    });

    test("in cotangents, such values affect only the keys and values that their queries attend to", () => {
      const [q, k, v] = [parameter(1, 2, 9, 8), parameter(1, 2, 9, 8), parameter(1, 2, 9, 8)];
      const gradientsOf = (cotangent: Tensor) =>
        on(way, () => {
          const out = flashAttention(q, k, v, { causal: true, path: way.path });
          return grad(out, [q, k, v], { gradOutputs: [cotangent] }).map(numbers);
        });
      const quiet = randn([1, 2, 9, 8], { generator: new Generator(9) });
      const [ofQ, ofK, ofV] = gradientsOf(withRows(quiet, [5], loud)) as [number[], number[], number[]];
      const finite = (values: number[]) => values.map(Number.isFinite);
      const rowsWhere = (holds: (row: number) => boolean) => (_: number, at: number) => holds(Math.floor(at / 8) % 9);
      expect(finite(ofQ)).toEqual(ofQ.map(rowsWhere((row) => row !== 5)));
      expect(finite(ofV)).toEqual(ofV.map(rowsWhere((row) => row > 5)));
      expect(finite(ofK)).toEqual(ofK.map(rowsWhere((row) => row > 5)));
    });

    test("keys and values beyond the end of a band have no effect", () => {
      const [q, k, v] = [parameter(1, 2, 4, 8), parameter(1, 2, 9, 8), parameter(1, 2, 9, 8)];
      const options = { causal: "top-left" } as const;
      const quiet = results(way, [q, withRows(k, [4, 8], 0), withRows(v, [4, 8], 0)], options);
      expect(results(way, [q, withRows(k, [4, 8], loud), withRows(v, [4, 8], loud)], options)).toEqual(quiet);
    });
  });

  test("a NaN among the attended scores makes its row NaN, and no other", () => {
    const [q, k, v] = [parameter(1, 1, 3, 4), parameter(1, 1, 5, 4), parameter(1, 1, 5, 4)];
    const out = on(way, () => flashAttention(withRows(q, [1], Number.NaN), k, v, { path: way.path }));
    expect(numbers(out).map(Number.isNaN)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0].map(Boolean));
  });

  test("rows that attend to nothing are 0, and so are their gradients", () => {
    const [q, k, v] = [parameter(1, 2, 6, 8), parameter(1, 2, 3, 8), parameter(1, 2, 3, 4)];
    const bias = parameter(1, 2, 6, 3);
    // Bottom-right alignment: the first three queries precede the first key.
    const [out, gradQ, , , gradBias] = results(way, [q, k, v], { causal: true, bias }, [bias]);
    const isEmpty = (at: number, width: number) => Math.floor(at / width) % 6 < 3;
    const ofEmpty = (values: number[], width: number) => values.filter((_, at) => isEmpty(at, width));
    for (const values of [ofEmpty(out, 4), ofEmpty(gradQ, 8), ofEmpty(gradBias, 3)])
      expect(values).toEqual(values.map(() => 0));
    expect(out.filter((value) => value === 0).length).toBe(2 * 3 * 4);
    const { logSumExp } = on(way, () =>
      flashAttention(q, k, v, { causal: true, path: way.path, returnLogSumExp: true }),
    );
    expect(numbers(logSumExp).map((value) => value === -Infinity)).toEqual(
      numbers(logSumExp).map((_, at) => at % 6 < 3),
    );
  });

  test("if no query attends to a key, everything is 0", () => {
    const inputs = [parameter(1, 1, 3, 4), parameter(1, 1, 5, 4), parameter(1, 1, 5, 4)] as const;
    const all = results(way, inputs, { mask: zeros([1], { dtype: "bool" }) });
    expect(all.flat().every((value) => value === 0)).toBe(true);
  });

  test("a row that attends only to its sink is 0, and its log-sum-exp is the sink", () => {
    const [q, k, v] = [parameter(1, 2, 3, 4), parameter(1, 2, 5, 4), parameter(1, 2, 5, 4)];
    const sinks = tensor([0.25, -1.5], { requiresGrad: true });
    const options = { mask: zeros([1], { dtype: "bool" }), sinks, path: way.path, returnLogSumExp: true } as const;
    const { out, logSumExp } = on(way, () => flashAttention(q, k, v, options));
    expect(numbers(out).every((value) => value === 0)).toBe(true);
    expect(numbers(logSumExp)).toEqual([0.25, 0.25, 0.25, -1.5, -1.5, -1.5]);
    const [gradient] = on(way, () => grad(logSumExp, [sinks], { gradOutputs: [ones([1, 2, 3])] }));
    expect(numbers(gradient)).toEqual([3, 3]);
  });

  test("a sink of −∞ has no effect", () => {
    const [q, k, v] = [parameter(1, 1, 3, 4), parameter(1, 1, 5, 4), parameter(1, 1, 5, 4)];
    const sinks = tensor([-Infinity], { requiresGrad: true });
    const mask = tensor([true, false, true]).reshape([3, 1]);
    const [out, , , , gradSinks] = results(way, [q, k, v], { mask, sinks }, [sinks]);
    expect(out).toEqual(results(way, [q, k, v], { mask })[0]);
    expect(gradSinks.map(Math.abs)).toEqual([0]);
  });

  test("no NaN arises in rows of zeros, forward or backward", () => {
    const inputs = [parameter(1, 2, 6, 8), parameter(1, 2, 3, 8), parameter(1, 2, 3, 4)] as const;
    const options = { causal: true, softcap: 3, window: { left: 1 } } as const;
    expect(() => detectAnomaly(() => results(way, inputs, options))).not.toThrow();
  });

  test.each([
    ["no batch", [0, 2, 3, 4], [0, 2, 5, 4], [0, 2, 5, 6]],
    ["no heads", [2, 0, 3, 4], [2, 0, 5, 4], [2, 0, 5, 6]],
    ["no queries", [2, 2, 0, 4], [2, 2, 5, 4], [2, 2, 5, 6]],
    ["no keys", [2, 2, 3, 4], [2, 2, 0, 4], [2, 2, 0, 6]],
    ["no value dim", [2, 2, 3, 4], [2, 2, 5, 4], [2, 2, 5, 0]],
  ] as const)("%s gives the definition's result", (_, q, k, v) => {
    const inputs = [parameter(...q), parameter(...k), parameter(...v)] as const;
    const [out, ...gradients] = results(way, inputs, { causal: true, dropout: 0.1 });
    expect(out.length).toBe(q[0] * q[1] * q[2] * v[3]);
    for (const values of [out, ...gradients]) expect(values.every((value) => value === 0)).toBe(true);
    expect(gradients.map(({ length }) => length)).toEqual(inputs.map(({ size }) => size));
  });

  test("scores that are far beyond exp's range are correct", () => {
    const q = tensor(
      [300, -300, 0].map((x) => [x]),
      { requiresGrad: true },
    ).reshape([1, 1, 3, 1]);
    const k = tensor([10, -10].map((x) => [x])).reshape([1, 1, 2, 1]);
    const v = tensor([1, 2].map((x) => [x])).reshape([1, 1, 2, 1]);
    const out = on(way, () => flashAttention(q, k, v, { path: way.path }));
    expect(numbers(out)).toEqual([1, 2, 1.5]);
  });

  // The kernels for one query and for many; Metal has further kernels, which use tiles.
  test.each([
    { queries: 1, keys: 70_001 },
    { queries: 9, keys: 70_001 },
    { queries: 70_001, keys: 3 },
  ])(
    "$queries queries and $keys keys are correct, whose positions have more than 15 and 16 bits",
    ({ queries, keys }) => {
      // On metal only results have a kernel for one query.
      const hasGradients = isExhaustive || queries > 1 || way.backend !== "metal";
      const q = zeros([1, 1, queries, 2], { requiresGrad: true });
      const k = randn([1, 1, keys, 2], { generator, requiresGrad: true });
      const v = tensor(
        Float32Array.from({ length: keys }, (_, key) => key / keys),
        { shape: [1, 1, keys, 1], requiresGrad: true },
      );
      // Equal scores: the mean of the keys that a causal query sees (aligned at the end), except those that dropout
      // drops.
      const [out, kept, , , gradV = []] = on(way, () => {
        const options = { causal: true, dropout: 0.25, generator: new Generator(1), path: way.path } as const;
        const { out: result, dropoutMask } = flashAttention(q, k, v, { ...options, returnDropoutMask: true });
        return [result, dropoutMask!, ...(hasGradients ? grad(sum(result), [q, k, v]) : [])].map(numbers);
      });
      const gradients = new Float64Array(keys);
      for (let query = 0; query < queries; query++) {
        const seen = Math.max(keys - queries + query + 1, 0);
        let total = 0;
        for (let key = 0; key < seen; key++) {
          const share = kept[query * keys + key] / (0.75 * seen);
          total += (share * key) / keys;
          gradients[key] += share;
        }
        expect(Math.abs(out[query] - total)).toBeLessThan(1e-4);
      }
      for (const [key, value] of gradV.entries())
        expect(Math.abs(value - gradients[key])).toBeLessThan(keys > 1000 ? 1e-9 : 1e-4);
    },
  );

  test("operands of negative and zero strides are read in place", () => {
    const base = parameter(1, 1, 6, 4);
    const k = base.flip([2]).detach();
    const expanded = randn([1, 1, 1, 4], { generator }).expand([1, 1, 6, 4]);
    const out = on(way, () => flashAttention(base, k, expanded, { path: way.path }));
    const row = numbers(expanded).slice(0, 4);
    for (const [at, value] of numbers(out).entries()) expect(value).toBeCloseTo(row[at % 4], 5);
  });
});
