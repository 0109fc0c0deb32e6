/**
 * Errors that only Metal's kernels can have: the order of threadgroups, tiles of other GPUs, a restarted softmax,
 * elements that are not finite.
 */
import { describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withGpuFamily } from "../../../src/backend/metal/gpu_family.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../src/ops/attention/options.ts";
import { vectorCut, vectorTeam } from "../../../src/ops/attention/tiles.metal.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { tensor } from "../../../src/ops/index.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { isExhaustive, usually } from "../../support/repeats.ts";
import { checkFindings } from "../run.ts";
import { Random } from "../samples.ts";
import { type AttentionCase, caseOf, type OptionName } from "./cases.ts";
import { checkCase } from "./run.ts";

const hasMetal = !environmentFlag("ORCHARD_SKIP_METAL");
const metal = { name: "metal", backend: "metal", path: "fused" } as const;

type Numbers = readonly number[];
type Shape = readonly [batch: number, heads: number, rows: number, dim: number];

/** Operands as numbers: row-major. */
interface Operands {
  readonly q: Numbers;
  readonly k: Numbers;
  readonly v: Numbers;
  readonly gradOut: Numbers;
  readonly queries: Shape;
  readonly keys: Shape;
}

function operands(queries: Shape, keys: Shape, seed = 1): Operands {
  const random = new Random(seed);
  const draw = (shape: Shape) =>
    Array.from({ length: shape.reduce((product, size) => product * size, 1) }, () => random.next() * 2 - 1);
  return { q: draw(queries), k: draw(keys), v: draw(keys), gradOut: draw(queries), queries, keys };
}

interface Options extends FlashAttentionOptions {
  readonly biasValues?: Numbers;
}

/** Output, log-sum-exp and all gradients, concatenated. */
function run(
  of: Operands,
  { biasValues, ...options }: Options = {},
  backend: BackendName = "metal",
  strict = true,
): number[] {
  return withStrict(strict, () =>
    withBackend(backend, () => {
      const leaf = (values: Numbers, shape: readonly number[]) =>
        tensor(Float32Array.from(values), { shape, requiresGrad: true });
      const [q, k, v] = [leaf(of.q, of.queries), leaf(of.k, of.keys), leaf(of.v, of.keys)];
      const bias = biasValues && leaf(biasValues, [of.queries[2], of.keys[2]]);
      const generator = new Generator(5);
      const all = { ...options, ...(bias ? { bias } : {}), generator, path: "fused", returnLogSumExp: true } as const;
      const { out, logSumExp } = flashAttention(q, k, v, all);
      const gradOutputs = [tensor(Float32Array.from(of.gradOut), { shape: of.queries })];
      const gradients = grad([out], [q, k, v, ...(bias ? [bias] : [])], { gradOutputs });
      return [out, logSumExp, ...gradients].flatMap((x: Tensor) => Array.from(x.dataSync(), Number));
    }),
  );
}

function withSettings<Result>(settings: Readonly<Record<string, number>>, body: () => Result): Result {
  const context = metalContext();
  const before = context.report().settings ?? {};
  for (const [name, value] of Object.entries(settings)) context.configure(name, value);
  try {
    return body();
  } finally {
    for (const name of Object.keys(settings)) context.configure(name, before[name] ?? "1");
  }
}

const checked = <Result>(name: string, body: () => Result): Result => {
  metalContext().configure("check", true);
  try {
    return body();
  } finally {
    checkFindings({ name });
    metalContext().configure("check", false);
  }
};

const largestError = (got: Numbers, want: Numbers): number =>
  got.reduce((most, value, at) => (value === want[at] ? most : Math.max(most, Math.abs(value - want[at]))), 0);

describe.if(hasMetal)("attention on metal is independent of the order of threadgroups", () => {
  test("attention gives the same bits for every number of workers and every order of threadgroups", () => {
    if (!metalContext().isSoftware) return expect(process.platform).toBe("darwin"); // a GPU chooses the order
    const of = operands([2, 4, 70, 16], [2, 2, 70, 16]);
    const random = new Random(3);
    const biasValues = Array.from({ length: 70 * 70 }, () => random.next());
    const options = { causal: true, dropout: 0.2, biasValues } as const;
    const first = run(of, options);
    for (const workers of usually([1, 2, 3], (own) => own !== 2))
      for (const seed of usually([1, 7, 1234], (own) => own !== 7))
        expect(withSettings({ workers, seed }, () => run(of, options))).toEqual(first);
    const few = operands([1, 2, 3, 16], [1, 2, 1200, 16]);
    const whole = run(few);
    for (const workers of [1, 3]) expect(withSettings({ workers, seed: 99 }, () => run(few))).toEqual(whole);
  });

  test("a call goes to another backend if a pipeline supports too few threads", () => {
    if (!metalContext().isSoftware) return expect(process.platform).toBe("darwin");
    const of = operands([1, 2, 40, 27], [1, 2, 40, 27]);
    resetCodepaths();
    const got = withSettings({ max_threads: 64 }, () => run(of, {}, "metal", false));
    const ways = codepaths().filter(({ operation }) => operation.startsWith("attention"));
    expect(ways.map(({ operation }) => operation).sort()).toEqual(["attentionBackward", "attentionForward"]);
    for (const { backend, reason } of ways) {
      expect(backend).not.toBe("metal");
      expect(reason).toMatch(/at most 64 threads, the limit of the pipeline, got 128/);
    }
    expect(largestError(got, run(of, {}, "reference"))).toBeLessThan(1e-5);
  });

  describe("attention with the tiles of M3 and later is correct", () => {
    const names: readonly (readonly OptionName[])[] = [
      [],
      ["causal", "dropout"],
      ["mask", "sinks"],
      ["grouped", "windowBoth"],
    ];
    const cases: AttentionCase[] = names.flatMap((options, at) => [
      caseOf(options, [1, 70, 150, 64, 40], at),
      caseOf(options, [1, 20, 75, 24, 32], at + 20),
      caseOf(options, [1, 33, 67, 104, 128], at + 10),
    ]);
    // A usual run has a third of the cases in each dtype: every size in each dtype, and every set of options in one
    // dtype.
    test.each([
      ["float32", usually(cases, (_, at) => (at + Math.floor(at / 3)) % 3 === 2)],
      ["float16", usually(cases, (_, at) => (at + Math.floor(at / 3)) % 3 === 0)],
      ["bfloat16", usually(cases, (_, at) => (at + Math.floor(at / 3)) % 3 === 1)],
    ] as const)("%s is correct", (dtype, some) => {
      checked("tiles of M3", () =>
        withGpuFamily("apple9", () => {
          for (const each of some) checkCase(each, dtype, metal);
        }),
      );
    });
  });

  // Some tiles contain rows of several sequences, some of one, and some also pairs that belong to no sequence.
  test.each(["bias", "biasOfHeads", "biasOfKeys"] as const)(
    "gradients of %s are correct in packed sequences of several tiles",
    (name) => {
      const lengths = [
        [65, 40],
        [40, 90],
        [97, 33],
      ] as const;
      checked(name, () => {
        for (const [at, [queries, keys]] of lengths.entries())
          checkCase(caseOf(["packed", name], [1, queries, keys, 8, 9], at + name.length), "float32", metal);
      });
    },
  );

  describe("with few queries and keys that are split into parts", () => {
    const names: readonly (readonly OptionName[])[] = [
      [],
      ["sinks", "mask"],
      ["dropout", "bias"],
      ["packed", "causal"],
    ];
    const cases = names.map((options, at) => caseOf(options, [1, 3, 1100 + at, 20, 33], at + 30));
    test.each([
      ["float32", cases],
      ["bfloat16", cases.slice(1, 3)],
    ] as const)("attention computed in parts is correct with %s", (dtype, some) => {
      checked("parts of keys", () => {
        for (const each of some) checkCase(each, dtype, metal);
      });
      expect(vectorCut(1100, 6)).toEqual({ parts: 8, simdgroups: 2 });
    });

    test("there are parts for eight SIMD-groups, if there would be too many parts for two", () => {
      expect(vectorCut(16_900, 1)).toEqual({ parts: 33, simdgroups: 8 });
      const own = { ...caseOf(["sinks"], [1, 1, 16_900, 4, 5], 40), isForward: !isExhaustive };
      checked("parts of many keys", () => checkCase(own, "float32", metal));
    });
  });

  describe("queries of heads that share keys, as teams of rows", () => {
    // Teams of 1 to 8 rows: one team and several, full and partly filled. Elements are read by fours, by twos and one
    // by one; with one D, a lane has space for only four rows. Keys are in one part or in two. A usual run has one size
    // in each dtype.
    const sizes = [
      { heads: 1, kvHeads: 1, queries: 1, dim: 128, valueDim: 64, names: [] },
      { heads: 2, kvHeads: 1, queries: 1, dim: 64, valueDim: 128, names: ["sinks"] },
      { heads: 6, kvHeads: 2, queries: 1, dim: 128, valueDim: 128, names: ["bias"] },
      { heads: 8, kvHeads: 2, queries: 1, dim: 256, valueDim: 40, names: ["mask"] },
      { heads: 5, kvHeads: 1, queries: 1, dim: 72, valueDim: 64, names: ["softcap"] },
      { heads: 12, kvHeads: 2, queries: 1, dim: 64, valueDim: 64, names: ["slopes"] },
      { heads: 7, kvHeads: 1, queries: 2, dim: 20, valueDim: 128, names: ["causal", "dropout"] },
      { heads: 8, kvHeads: 1, queries: 1, dim: 128, valueDim: 128, names: ["dropout", "mask"] },
      { heads: 11, kvHeads: 1, queries: 1, dim: 192, valueDim: 256, names: ["windowBoth"] },
      { heads: 4, kvHeads: 2, queries: 3, dim: 64, valueDim: 64, names: ["windowBoth"] },
      { heads: 4, kvHeads: 2, queries: 7, dim: 16, valueDim: 16, names: ["packed", "causal"] },
      { heads: 2, kvHeads: 2, queries: 8, dim: 33, valueDim: 9, names: ["causal", "bias"] },
    ] as const;
    const layouts = ["contiguous", "contiguous", "contiguous", "contiguous"] as const;
    const cases = [75, 1030].flatMap((keys) =>
      sizes.map(({ names, heads, kvHeads, queries, dim, valueDim }, at): AttentionCase => {
        const drawn = caseOf(names, [keys === 75 ? 2 : 1, queries, keys, dim, valueDim], at + keys);
        const own = { ...drawn, heads, kvHeads, name: `${drawn.name} ${heads} heads on ${kvHeads}` };
        return at % 2 === 0 ? { ...own, layouts } : own;
      }),
    );
    test.each([
      ["float32", usually(cases, ({ keys }, at) => (keys === 75 ? at % 3 === 2 : at % 12 === 0))],
      ["float16", usually(cases, ({ keys }, at) => (keys === 75 ? at % 3 === 0 : at % 12 === 5))],
      ["bfloat16", usually(cases, ({ keys }, at) => (keys === 75 ? at % 3 === 1 : at % 12 === 10))],
    ] as const)("%s is correct in teams", (dtype, some) => {
      checked("teams of rows", () => {
        for (const each of some) checkCase(each, dtype, metal);
      });
    });

    test("there are 1, 2, 4 or 8 teams, as few as fit", () => {
      const teams = [1, 2, 3, 4, 5, 8, 9, 12, 16, 17].map((rows) => vectorTeam(rows, 128));
      expect(teams.map(({ teamRows }) => teamRows)).toEqual([1, 2, 4, 4, 8, 8, 8, 8, 8, 8]);
      expect(teams.map(({ teams: count }) => count)).toEqual([1, 1, 1, 1, 1, 1, 2, 2, 2, 3]);
      expect(vectorTeam(8, 129)).toEqual({ teamRows: 4, teams: 2 });
    });
  });

  test.each([
    ["rise", (key: number) => key],
    ["fall", (key: number) => 99 - key],
    ["jump once", (key: number) => (key === 77 ? 90 : 0)],
  ] as const)("scores that %s from tile to tile, far beyond a float's range of exponentials", (_, score) => {
    const of = operands([1, 1, 40, 8], [1, 1, 100, 8]);
    const row = (x: Numbers, value: (row: number) => number) =>
      x.map((own, at) => (at % 8 === 0 ? value(at / 8) : own * 1e-3));
    const steep = { ...of, q: row(of.q, () => 8), k: row(of.k, score) };
    const [got, want] = [checked("steep scores", () => run(steep)), run(steep, {}, "reference")];
    expect(got.every(Number.isFinite)).toBe(true);
    expect(largestError(got.slice(0, 320), want.slice(0, 320))).toBeLessThan(1e-4);
    expect(largestError(got, want) / Math.max(...want.map(Math.abs))).toBeLessThan(1e-5);
  });

  /** Fills the rows from `from` of each head with large values. */
  const louder = (x: Numbers, [, , rows, dim]: Shape, isLoud: (row: number) => boolean, loud: number) =>
    x.map((own, at) => (isLoud(Math.floor(at / dim) % rows) ? loud : own));

  describe.each([Number.NaN, Number.POSITIVE_INFINITY])("masked keys and values of %d change no bit", (loud) => {
    const of = operands([1, 2, 70, 24], [1, 2, 70, 24]);
    const withKeys = (isLoud: (row: number) => boolean, value: number): Operands => ({
      ...of,
      k: louder(of.k, of.keys, isLoud, value),
      v: louder(of.v, of.keys, isLoud, value),
    });
    const masked = (row: number) => row % 5 === 2 || row > 60;
    const mask = () =>
      tensor(
        Array.from({ length: 70 }, (_, row) => !masked(row)),
        { dtype: "bool" },
      );
    const options: Readonly<Record<string, () => Options>> = {
      "a mask": () => ({ mask: mask() }),
      "a mask and dropout": () => ({ mask: mask(), dropout: 0.3, causal: true }),
      "a bias of −∞": () => ({
        biasValues: Array.from({ length: 4900 }, (_, at) => (masked(at % 70) ? -Infinity : 0)),
      }),
    };

    test.each(Object.keys(options))("keys and values change no bit if masked by %s, tile by tile", (name) => {
      checked(name, () => {
        const quiet = run(withKeys(masked, 0), options[name]());
        expect(run(withKeys(masked, loud), options[name]())).toEqual(quiet);
        expect(quiet.every(Number.isFinite)).toBe(true);
      });
    });

    test("keys and values change no bit if masked, when few queries share a key's row", () => {
      const few = (own: Operands) => ({ ...own, q: own.q.slice(0, 144), gradOut: own.gradOut.slice(0, 144) });
      const queries = [1, 2, 3, 24] as const;
      const [noisy, quiet] = [loud, 0].map((value) => ({ ...few(withKeys(masked, value)), queries }));
      const got = checked("few queries", () => run(noisy, { mask: mask(), causal: true }));
      expect(got).toEqual(run(quiet, { mask: mask(), causal: true }));
      expect(got.every(Number.isFinite)).toBe(true);
    });

    test("keys and values affect only the queries that attend to them", () => {
      const isLoud = (row: number) => row === 37;
      const got = checked("causal", () => run({ ...of, v: louder(of.v, of.keys, isLoud, loud) }, { causal: true }));
      const quiet = run(of, { causal: true });
      const width = 24;
      for (let row = 0; row < 2 * 70; row++) {
        const own = got.slice(row * width, (row + 1) * width);
        if (row % 70 < 37) expect(own).toEqual(quiet.slice(row * width, (row + 1) * width));
        else expect(own).toEqual(own.map(() => loud));
      }
    });

    test("values in one packed sequence do not affect other sequences or their gradients", () => {
      const lengths = { cuSeqlens: [0, 13, 44, 70] } as const;
      const inLast = (row: number) => row >= 44;
      const noisy = withKeys(inLast, loud);
      const everywhere = {
        ...noisy,
        q: louder(of.q, of.queries, inLast, loud),
        gradOut: louder(of.gradOut, of.queries, inLast, loud),
      };
      const [got, quiet] = [checked("packed", () => run(everywhere, lengths)), run(of, lengths)];
      const rows = [...Array(2 * 70).keys()].filter((row) => !inLast(row % 70));
      const rowsOf = (values: Numbers, start: number) =>
        rows.map((row) => values.slice(start + row * 24, start + (row + 1) * 24));
      const size = 2 * 70 * 24;
      // Out, and the gradients of q, k and v.
      const starts = [0, ...[0, 1, 2].map((index) => size + 2 * 70 + index * size)];
      for (const start of starts) expect(rowsOf(got, start)).toEqual(rowsOf(quiet, start));
    });
  });
});
