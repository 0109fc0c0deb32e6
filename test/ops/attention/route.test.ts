/** How `path: "auto"` chooses by a given table: each rule, and the reason in `codepaths()`. */
import { afterEach, describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import {
  type Crossovers,
  type CrossoverTable,
  crossoverOf,
  shippedTable,
} from "../../../src/ops/attention/crossover.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../src/ops/attention/options.ts";
import {
  type Chooser,
  chooseRoute,
  type RoutedCall,
  routeOf,
  unmeasuredOptions,
} from "../../../src/ops/attention/route.ts";
import { scaledDotProductAttention } from "../../../src/ops/attention/scaled_dot_product_attention.ts";
import { zeros } from "../../../src/ops/creation/full.ts";

/** A different number in each cell: dims up to 32, 64, 128, 256 in rows; batch · heads from 1, 4, 16 in columns. */
const cells: Crossovers = [
  [100, 200, 300],
  [400, 500, 600],
  [700, 800, 900],
  [1000, 1100, 0],
];
const narrow: Crossovers = cells.map((row) => row.map((pairs) => pairs + 1));
const table: CrossoverTable = { pairs: { cpu: { float32: cells, narrow } }, scoresShare: 0.25 };
const chooser: Chooser = { backend: "cpu", table, memoryLimit: () => 1e12 };

const call: RoutedCall = {
  dtype: "float32",
  pairs: [2, 4, 10, 50],
  dim: 64,
  valueDim: 64,
  options: [],
};

test("the class of a call is its dtype, its larger dim and its batch · heads", () => {
  const at = (dtype: RoutedCall["dtype"], dim: number, heads: number) =>
    crossoverOf(table, { backend: "cpu", dtype, dim, heads });
  expect([1, 32, 33, 64, 65, 128, 129, 256].map((dim) => at("float32", dim, 1))).toEqual([
    100, 100, 400, 400, 700, 700, 1000, 1000,
  ]);
  expect([1, 3, 4, 15, 16, 4096].map((heads) => at("float32", 8, heads))).toEqual([100, 100, 200, 200, 300, 300]);
  expect([at("float16", 64, 4), at("bfloat16", 64, 4), at("float64", 64, 4)]).toEqual([501, 501, undefined]);
  expect(crossoverOf(table, { backend: "metal", dtype: "float32", dim: 8, heads: 1 })).toBeUndefined();
});

const rules: readonly [string, Partial<RoutedCall>, Partial<Chooser>, "fused" | "unfused", string][] = [
  ["as many scores as the crossover", {}, {}, "unfused", "at most 500 scores a head"],
  ["one query more", { pairs: [2, 4, 11, 50] }, {}, "fused", "over 500 scores a head"],
  ["one key more", { pairs: [2, 4, 10, 51] }, {}, "fused", "over 500 scores a head"],
  ["fewer heads", { pairs: [1, 3, 10, 50] }, {}, "fused", "over 400 scores a head"],
  ["a larger value dim", { valueDim: 65, pairs: [2, 4, 20, 40] }, {}, "unfused", "at most 800 scores a head"],
  ["another dtype class", { dtype: "float16", pairs: [2, 4, 3, 167] }, {}, "unfused", "at most 501 scores a head"],
  ["a class that is never faster", { dim: 256, pairs: [4, 4, 1, 1] }, {}, "fused", "faster at every length measured"],
  ["a dtype that was not measured", { dtype: "float64" }, {}, "fused", "no crossover is measured for float64"],
  ["a backend that was not measured", {}, { backend: "metal" }, "fused", "on metal"],
  ["an option", { options: ["bias", "sinks"] }, {}, "fused", "no crossover is measured with bias, sinks"],
  ["no scores at all", { pairs: [2, 4, 10, 0] }, {}, "fused", "nothing to compute"],
  ["no batch", { pairs: [0, 4, 10, 10] }, {}, "fused", "nothing to compute"],
  ["a dim that no kernel has", { dim: 257, pairs: [1, 1, 1e4, 1e4] }, {}, "unfused", "dim or valueDim over 256"],
  // 2 · 4 · 10 · 50 scores of 4 bytes are 16,000 bytes, a quarter of the limit.
  ["scores at the ceiling", {}, { memoryLimit: () => 64_000 }, "unfused", "at most 500"],
  ["scores over the ceiling", {}, { memoryLimit: () => 63_999 }, "fused", "exceed the memory limit"],
];

test.each(rules)("%s decides the path", (_, changes, by, kind, because) => {
  const route = chooseRoute({ ...call, ...changes }, { ...chooser, ...by });
  expect(route.kind).toBe(kind);
  expect(route.reason).toContain(because);
});

test("scores of 16-bit types count as float32, in which they are computed, and those of float64 as 8 bytes", () => {
  const wide: CrossoverTable = { ...table, pairs: { cpu: { float64: cells, narrow } } };
  const kindAt = (dtype: RoutedCall["dtype"], memoryLimit: number) =>
    chooseRoute({ ...call, dtype }, { backend: "cpu", table: wide, memoryLimit: () => memoryLimit }).kind;
  expect([kindAt("bfloat16", 64_000), kindAt("bfloat16", 63_999)]).toEqual(["unfused", "fused"]);
  expect([kindAt("float64", 128_000), kindAt("float64", 127_999)]).toEqual(["unfused", "fused"]);
});

test("the same call always takes the same path, for the same reason", () => {
  const routes = Array.from({ length: 50 }, () => chooseRoute(call, chooser));
  expect(new Set(routes.map((route) => JSON.stringify(route))).size).toBe(1);
  const lengths = Array.from({ length: 500 }, (_, n) => chooseRoute({ ...call, pairs: [1, 1, 1, n + 1] }, chooser));
  expect(new Set(lengths.map(({ reason }) => reason)).size).toBe(2); // each path has one reason, whatever the length
});

test("an explicit path is taken, regardless of the table", () => {
  expect(routeOf("x", "fused", call)).toEqual({ kind: "fused", backend: undefined, reason: "as requested" });
  expect(routeOf("x", "reference", call).backend).toBe("reference");
  expect(routeOf("x", "unfused", { ...call, options: ["bias"], pairs: [9, 9, 1e5, 1e5] }).kind).toBe("unfused");
});

test("options without effect leave the choice open; all others count as unmeasured", () => {
  const mask = zeros([1], { dtype: "bool" });
  const none: FlashAttentionOptions = { causal: false, dropout: 0, scale: 2, path: "auto", returnLogSumExp: true };
  expect(unmeasuredOptions(none)).toEqual([]);
  const all = { causal: true, dropout: 0.5, window: 0, softcap: 1, mask, bias: mask, sinks: mask, alibi: [1] };
  expect(unmeasuredOptions({ ...all, cuSeqlens: [0] }).toSorted()).toEqual(
    [...Object.keys(all), "cuSeqlens"].toSorted(),
  );
});

test("the shipped table has measurements of the cpu in every class, and none of metal", () => {
  for (const dtype of ["float64", "float32", "float16", "bfloat16"] as const)
    for (const dim of [1, 64, 128, 256])
      for (const heads of [1, 4, 16]) {
        expect(crossoverOf(shippedTable, { backend: "cpu", dtype, dim, heads })).toBeNumber();
        expect(crossoverOf(shippedTable, { backend: "metal", dtype, dim, heads })).toBeUndefined();
      }
});

describe("codepaths() explains the path of attention", () => {
  afterEach(resetCodepaths);

  const reasonsOf = (operation: string) =>
    codepaths()
      .flatMap((way) => (way.operation === operation ? [`${way.calls} ${way.backend}, ${way.reason}`] : []))
      .toSorted();

  test("codepaths() says which path a call took, and why", () => {
    resetCodepaths();
    const [q, wide] = [zeros([1, 1, 4, 8]), zeros([1, 1, 4, 300])];
    withBackend("cpu", () => {
      flashAttention(q, q, q);
      flashAttention(q, q, q, { path: "unfused" });
      flashAttention(q, q, q, { path: "reference" });
      flashAttention(wide, wide, wide);
      flashAttention(wide, wide, wide);
      scaledDotProductAttention(q, q, q, { isCausal: true });
    });
    expect(reasonsOf("flashAttention")).toEqual([
      "1 cpu, fused: faster at every length measured for float32, dim up to 32, batch · heads from 1",
      "1 cpu, unfused: as requested",
      "1 reference, fused: as requested",
      "2 cpu, unfused: dim or valueDim over 256",
    ]);
    expect(reasonsOf("scaledDotProductAttention")).toEqual(["1 cpu, fused: no crossover is measured with causal"]);
  });
});
