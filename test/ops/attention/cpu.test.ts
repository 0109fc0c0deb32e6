/**
 * Properties of the cpu backend: instruction sets, threads, chunks of keys, scratch memory, and rows that are excluded
 * from its products.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo, cpuStatistics } from "../../../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../src/ops/attention/options.ts";
import { scoresCall } from "../../../src/ops/attention/primitive.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { cat } from "../../../src/ops/join/cat.ts";
import { randn } from "../../../src/ops/random/randn.ts";
import { sum } from "../../../src/ops/reduction/sum.ts";
import { narrow } from "../../../src/ops/view/slice.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { Random } from "../samples.ts";
import { alone, caseOf } from "./cases.ts";
import { checkCase, type Way } from "./run.ts";

const { native } = cpuLibrary();
const { isas } = cpuInfo(native);
const { memoryLimit } = cpuStatistics(native);
const way: Way = { name: "cpu", backend: "cpu", path: "fused" };
const onCpu = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("cpu", body));

afterEach(() => {
  configure(native, "isa", "auto");
  configure(native, "threads", "auto");
  native.orchard_cpu_set_memory_limit(memoryLimit);
  native.orchard_cpu_fail_allocations(0);
});

const generator = new Generator(21);
const parameter = (...shape: number[]): Tensor => randn(shape, { generator, requiresGrad: true });

/** Output, log-sum-exp and all gradients of a call whose dropout is always the same. */
function results(leaves: readonly Tensor[], options: FlashAttentionOptions, gradOut: Tensor): Tensor[] {
  const [q, k, v] = leaves as [Tensor, Tensor, Tensor];
  const all = { ...options, generator: new Generator(2), returnLogSumExp: true } as const;
  const { out, logSumExp } = flashAttention(q, k, v, all);
  return [out, logSumExp, ...grad(out, leaves, { gradOutputs: [gradOut] })];
}

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>);
const allOf = (tensors: readonly Tensor[]): number[][] => tensors.map(numbersOf);

describe.each(isas)("attention on %s without a fused kernel", (isa) => {
  // Each option runs with one of four sizes, which differs from option to option.
  const rotated = alone.filter((_, at) => at % 4 === Math.floor(at / 4) % 4);
  test.each(rotated.map((each) => [each.name, each] as const))("%s equals the definition", (_, each) => {
    configure(native, "isa", isa);
    checkCase(each, "float32", way);
  });

  test.each(["float64", "float16", "bfloat16"] as const)("%s equals the definition", (dtype) => {
    configure(native, "isa", isa);
    checkCase(caseOf(["causal", "dropout", "grouped"], [1, 33, 65, 31, 20], 3), dtype, way);
  });
});

/** The number of scores that a forward and a backward pass compute, including masked ones in whole tiles. */
function computedScores(run: () => void): { forward: number; backward: number } {
  const before = { forward: scoresOf("forward"), backward: scoresOf("backward") };
  run();
  return { forward: scoresOf("forward") - before.forward, backward: scoresOf("backward") - before.backward };
}

function scoresOf(pass: "forward" | "backward"): number {
  const scores = new Float64Array(1);
  scoresCall("attentionScores", { pass }, [scores]);
  return scores[0];
}

describe.each(isas)("tiles without attention are skipped on %s", (isa) => {
  const [rows, heads, bounds] = [768, 2, [0, 100, 300, 768]];
  const sequenceOf = (row: number) => bounds.findIndex((bound) => row < bound);
  test.each([
    ["dense", {}, () => true],
    ["causal", { causal: true }, (i: number, j: number) => j <= i],
    ["window", { window: 50 }, (i: number, j: number) => Math.abs(i - j) <= 50],
    ["causal window", { causal: true, window: { left: 40 } }, (i: number, j: number) => j <= i && i - j <= 40],
    ["packed", { cuSeqlens: bounds }, (i: number, j: number) => sequenceOf(i) === sequenceOf(j)],
    [
      "packed causal",
      { cuSeqlens: bounds, causal: true },
      (i: number, j: number) => j <= i && sequenceOf(i) === sequenceOf(j),
    ],
  ] as const)("%s are skipped without a change of the result", (_, options, attends) => {
    configure(native, "isa", isa);
    let pairs = 0;
    for (let i = 0; i < rows; i++) for (let j = 0; j < rows; j++) if (attends(i, j)) pairs++;
    // A panel computes the keys of each row for all its rows, including padding.
    const most = pairs + rows * 128;
    const [q, k, v] = [0, 1, 2].map(() => parameter(1, heads, rows, 4));
    const { forward, backward } = computedScores(() => onCpu(() => results([q, k, v], options, v)));
    for (const computed of [forward / heads, backward / heads]) {
      expect(computed).toBeGreaterThanOrEqual(pairs);
      expect(computed).toBeLessThanOrEqual(most);
    }
  });
});

test.each(isas)("a pass computes at most a vector of padding queries and 7 padding keys on %s", (isa) => {
  configure(native, "isa", isa);
  const random = new Random(3);
  const lanes = /^(avx512|amx)/.test(isa) ? 16 : 8; // of float32; a tile of 4 lanes has two vectors
  for (let draw = 0; draw < 12; draw++) {
    const [heads, rows, keys] = [random.integer(1, 4), random.integer(5, 420), random.integer(1, 420)];
    const [q, k] = [rows, keys].map((length) => parameter(1, heads, length, 8)) as [Tensor, Tensor];
    const { forward } = computedScores(() => onCpu(() => flashAttention(q, k, k)));
    expect(forward).toBeLessThan(heads * (rows + lanes) * (keys + 8));
  }
});

test("packed texts have the same bits as each text alone, on any number of threads", () => {
  const random = new Random(5);
  const lengths = Array.from({ length: 12 }, () => random.integer(5, 300));
  const bounds = [0];
  for (const length of lengths) bounds.push(bounds.at(-1)! + length);
  const [q, k, v] = [0, 1, 2].map(() => parameter(1, 3, bounds.at(-1) ?? 0, 32)) as [Tensor, Tensor, Tensor];
  for (const causal of [false, true]) {
    const alone = lengths.map((length, at) => {
      const partOf = (x: Tensor) => narrow(x, 2, bounds[at], length);
      return onCpu(() => flashAttention(partOf(q), partOf(k), partOf(v), { causal }));
    });
    const expected = numbersOf(onCpu(() => cat(alone, 2)));
    for (const threads of ["1", "2", "5"]) {
      configure(native, "threads", threads);
      expect(numbersOf(onCpu(() => flashAttention(q, k, v, { causal, cuSeqlens: bounds })))).toEqual(expected);
    }
  }
});

describe("several chunks of keys give the same results as one", () => {
  const sizes = [2, 24, 600, 8, 5] as const;
  test.each(["bhij", "ij", "hj", "bi", "i", "h"])("several chunks of keys have a gradient of bias[%s]", (bias) => {
    checkCase({ ...caseOf(["causal"], sizes, 5), bias, name: `bias of ${bias}` }, "float32", way);
  });

  test.each([
    ["sinks", "dropout"],
    ["packed", "softcap"],
    ["windowBoth", "grouped"],
    ["multiQuery", "logSumExp"],
  ] as const)("several chunks of keys are correct with %s and %s", (first, second) => {
    checkCase(caseOf([first, second], sizes, 6), "float32", way);
  });
});

describe("few queries use several chunks of keys", () => {
  const sizes = [2, 3, 2500, 20, 18] as const;
  test.each([
    ["grouped", "causal"],
    ["windowBoth", "dropout"],
    ["packed", "softcap"],
    ["multiQuery", "sinks"],
    ["slopes", "mask"],
  ] as const)("few queries are correct with %s and %s", (first, second) => {
    checkCase(caseOf([first, second], sizes, 8), "float32", way);
  });

  test.each(["bhij", "ij", "hj", "i"])("few queries are correct with bias[%s]", (bias) => {
    checkCase({ ...caseOf(["causal"], sizes, 9), bias, name: `bias of ${bias}` }, "float16", way);
  });

  test("few queries have the same bits on any number of threads", () => {
    const [q, k, v] = [parameter(1, 4, 2, 24), parameter(1, 2, 3000, 24), parameter(1, 2, 3000, 40)];
    const [first, ...others] = ["1", "2", "5"].map((threads) => {
      configure(native, "threads", threads);
      return numbersOf(onCpu(() => flashAttention(q, k, v, { causal: true })));
    });
    for (const other of others) expect(other).toEqual(first);
  });

  test("with few queries, a value that is not finite affects only the queries that attend to it", () => {
    const [q, k, v] = [parameter(1, 1, 2, 8), parameter(1, 1, 1500, 8), parameter(1, 1, 1500, 8)];
    const last = tensor([...numbersOf(v).slice(0, -8), ...Array<number>(8).fill(Number.NaN)], { shape: v.shape });
    const [quiet, loud] = [v, last].map((values) =>
      numbersOf(onCpu(() => flashAttention(q, k, values, { causal: true }))),
    );
    expect(loud.slice(0, 8)).toEqual(quiet.slice(0, 8));
    expect(loud.slice(8).every(Number.isNaN)).toBe(true);
  });
});

test.each([
  ["for each key", [4, 1, 700]],
  ["for each query", [500, 1]],
] as const)("results have the same bits on any number of threads, with a bias %s", (_, shape) => {
  const [q, k, v] = [parameter(2, 4, 500, 24), parameter(2, 2, 700, 24), parameter(2, 2, 700, 40)];
  const [bias, sinks] = [parameter(...shape), parameter(4)];
  const gradOut = parameter(2, 4, 500, 40);
  const options = { causal: true, dropout: 0.2, softcap: 3, bias, sinks } as const;
  const [first, ...others] = ["1", "2", "3", "8"].map((threads) => {
    configure(native, "threads", threads);
    return allOf(onCpu(() => results([q, k, v, bias, sinks], options, gradOut)));
  });
  expect(first.flat().every(Number.isFinite)).toBe(true);
  for (const other of others) expect(other).toEqual(first);
});

test("small heads, several of which one thread computes together, have the same bits on any number of threads", () => {
  const [q, k, v, gradOut] = [0, 1, 2, 3].map(() => parameter(6, 4, 64, 32)) as [Tensor, Tensor, Tensor, Tensor];
  const [first, ...others] = ["1", "2", "5"].map((threads) => {
    configure(native, "threads", threads);
    return allOf(onCpu(() => results([q, k, v], { causal: true }, gradOut)));
  });
  expect(first.flat().every(Number.isFinite)).toBe(true);
  for (const other of others) expect(other).toEqual(first);
});

test("short heads are correct in panels of each width", () => {
  for (const rows of [9, 31, 64, 257]) checkCase(caseOf(["causal"], [2, rows, rows, 32, 16], 4), "float32", way);
});

describe("the memory of attention is linear", () => {
  const megabyte = 2 ** 20;
  const rows = 8192; // a matrix of their scores takes 256 MB
  const run = () => {
    const leaves = [0, 1, 2].map(() => parameter(1, 1, rows, 16));
    Bun.gc(true); // garbage of earlier tests would free memory when it is collected under the limit
    const before = cpuStatistics(native).liveBytes;
    const withLimit = (limit: number) => {
      native.orchard_cpu_set_memory_limit(before + limit);
      return onCpu(() => results(leaves, { causal: true, dropout: 0.1 }, leaves[0]));
    };
    return withLimit;
  };

  test("memory grows with the number of rows and not with its square", () => {
    const results = run()(48 * megabyte);
    for (const each of results) expect(numbersOf(each).every(Number.isFinite)).toBe(true);
  });

  test("too little memory is an error, after which no memory stays in use", () => {
    const withLimit = run();
    const { liveBytes } = cpuStatistics(native);
    expect(() => withLimit(megabyte / 4)).toThrow(
      /\d+ bytes are refused: \d+ bytes are live and the memory limit is \d+/,
    );
    expect(cpuStatistics(native).liveBytes).toBeLessThan(liveBytes + megabyte);
  });
});

describe("rows that are not finite", () => {
  const values = (x: Tensor, rows: readonly number[], value: number): Tensor => {
    const width = x.shape[3];
    const all = numbersOf(x).map((own, at) => (rows.includes(Math.floor(at / width)) ? value : own));
    return tensor(all, { shape: x.shape, requiresGrad: true });
  };
  const [q, k, v, gradOut] = [0, 1, 2, 3].map(() => parameter(1, 1, 60, 8)) as [Tensor, Tensor, Tensor, Tensor];
  const run = (from: Tensor, incoming: Tensor) => allOf(onCpu(() => results([from, k, v], { causal: true }, incoming)));
  const rowsOf = (gradient: readonly number[], first: number, end: number) => gradient.slice(first * 8, end * 8);
  const quiet = run(q, gradOut);

  test.each([Number.NaN, Infinity])(
    "a gradient of %d affects the values that its row attends to, and no other",
    (loud) => {
      const [, , gradQ, gradK, gradV] = run(q, values(gradOut, [30], loud));
      for (const gradient of [gradK, gradV]) {
        expect(rowsOf(gradient, 31, 60)).toEqual(rowsOf(gradient === gradK ? quiet[3] : quiet[4], 31, 60));
        expect(rowsOf(gradient, 0, 31).some(Number.isFinite)).toBe(false);
      }
      expect(rowsOf(gradQ, 0, 30)).toEqual(rowsOf(quiet[2], 0, 30));
    },
  );

  test("a query of NaN affects the keys that it attends to, and no other", () => {
    const [out, , gradQ, gradK] = run(values(q, [30], Number.NaN), gradOut);
    expect(rowsOf(gradK, 31, 60)).toEqual(rowsOf(quiet[3], 31, 60));
    expect(rowsOf(gradK, 0, 31).every(Number.isNaN)).toBe(true);
    for (const [own, wanted] of [
      [out, quiet[0]],
      [gradQ, quiet[2]],
    ] as const) {
      expect(rowsOf(own, 0, 30)).toEqual(rowsOf(wanted, 0, 30));
      expect(rowsOf(own, 30, 31).every(Number.isNaN)).toBe(true);
      expect(rowsOf(own, 31, 60)).toEqual(rowsOf(wanted, 31, 60));
    }
  });

  test.each([Number.NaN, Infinity])("keys of %d have a gradient if queries need none", (loud) => {
    const key = values(k, [30], loud);
    const of = (wanted: Tensor[]) => onCpu(() => grad(sum(flashAttention(q, key, v, { causal: true })), wanted));
    const [, gradK] = of([q, key]);
    expect(numbersOf(of([key])[0])).toEqual(numbersOf(gradK));
  });

  test("rows that attend to nothing contribute nothing, regardless of their contents", () => {
    // The first 40 of 60 queries precede the first key.
    const [few, fewer] = [parameter(1, 1, 20, 8), parameter(1, 1, 20, 8)];
    const loud = Array.from({ length: 40 }, (_, row) => row);
    const of = (from: Tensor, incoming: Tensor) =>
      allOf(onCpu(() => results([from, few, fewer], { causal: true }, incoming)));
    expect(of(values(q, loud, Number.NaN), values(gradOut, loud, Infinity))).toEqual(of(q, gradOut));
  });
});
