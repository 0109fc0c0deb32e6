/**
 * The first elements of long slices on cpu, which are selected by parts and thresholds, compared with a stable sort.
 */
import { afterAll, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { topk } from "../../../src/ops/sorting/sort.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { Random } from "../samples.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  configure(native, "threads", "auto");
});

/** NaN above infinity, both zeros equal. */
const compare = (a: number, b: number): number =>
  Number.isNaN(a) || Number.isNaN(b) ? Number(Number.isNaN(a)) - Number(Number.isNaN(b)) : a - b || 0;

const special = [Number.NaN, Infinity, -Infinity, 0, -0, -1, 1];
const sources: Readonly<Record<string, (index: number, random: Random) => number>> = {
  few: (_, random) => Math.floor(random.next() * 4),
  many: (_, random) => Math.floor(random.next() * 2 ** 24) - 2 ** 23,
  rising: (index) => index >> 1,
  falling: (index) => -(index >> 1),
  equal: () => 3,
  // The largest ones are at the end of the first part, where a slow algorithm would take long, and after it.
  late: (index) => (index < 32_500 ? index >> 1 : 99_999),
  special: (index, random) => (index % 5 === 0 ? special[index % special.length] : random.next() - 0.5),
  "not numbers": (index) => (index % 1000 === 7 ? index : Number.NaN),
};

const cases: readonly (readonly [string, DType, readonly number[], number])[] = [
  ...Object.keys(sources).flatMap((name) => [
    [name, "float32", [70_001], 100] as const,
    [name, "float64", [70_001], 100] as const,
    [name, "float32", [70_001], 3000] as const,
  ]),
  ["few", "uint8", [70_001], 5000],
  ["few", "bool", [70_001], 200],
  ["few", "int64", [70_001], 3000],
  ["many", "int64", [70_001], 64],
  ["many", "int32", [70_001], 64],
  ["rising", "uint32", [40_000], 64],
  ["special", "bfloat16", [70_001], 300],
  ["special", "float16", [70_001], 300],
  ["many", "float32", [33_000], 1],
  ["many", "float32", [5, 40_000], 20],
  ["few", "float32", [60, 513], 64],
  ["special", "float32", [60, 513], 3],
];

test.each(cases)("topk of long rows is right: %s, %s %j, k = %i", async (name, dtype, shape, k) => {
  const random = new Random(11);
  const count = shape.reduce((product, size) => product * size, 1);
  const values = Array.from({ length: count }, (_, index) => sources[name](index, random));
  const length = shape.at(-1)!;
  const x = withBackend("cpu", () => toDType(tensor(values, { shape, dtype: "float64" }), dtype));
  const stored = await toDType(x, "float64").data();
  for (const largest of [true, false]) {
    const expected: number[] = [];
    for (let start = 0; start < count; start += length) {
      const order = Array.from({ length }, (_, index) => index);
      const at = (index: number) => stored[start + index];
      order.sort((a, b) => (largest ? compare(at(b), at(a)) : compare(at(a), at(b))) || a - b);
      expected.push(...order.slice(0, k));
    }
    for (const isa of isas)
      for (const threads of ["1", "2"]) {
        configure(native, "isa", isa);
        configure(native, "threads", threads);
        const found = withBackend("cpu", () => topk(x, k, { largest }));
        expect(Array.from(await found.indices.data(), Number)).toEqual(expected);
        const taken = Array.from(await toDType(found.values, "float64").data());
        const wrong = taken.findIndex(
          (value, at) => !Object.is(value, stored[Math.floor(at / k) * length + expected[at]]),
        );
        expect(wrong).toBe(-1);
      }
  }
});
