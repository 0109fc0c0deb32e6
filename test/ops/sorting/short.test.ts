/**
 * Operations on many short slices on cpu, which a sorting network orders several at a time, and searches for many
 * values. Shapes, axes, layouts and dtypes are drawn; results are compared with plain JavaScript on every instruction
 * set and several numbers of threads.
 */
import { afterAll, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { bucketize, kthvalue, median, mode, nanmedian, quantile, searchsorted, sort } from "../../../src/index.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { Random } from "../samples.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  configure(native, "threads", "auto");
});

function onEach<Result>(compute: () => Result): Result[] {
  return isas.flatMap((isa) =>
    ["1", "3"].map((threads) => {
      configure(native, "isa", isa);
      configure(native, "threads", threads);
      return withBackend("cpu", compute);
    }),
  );
}

/** NaN above infinity, both zeros equal. */
const compare = (a: number, b: number): number =>
  Number.isNaN(a) || Number.isNaN(b) ? Number(Number.isNaN(a)) - Number(Number.isNaN(b)) : a - b || 0;

const special = [Number.NaN, Infinity, -Infinity, 0, -0];
const floats: readonly DType[] = ["float32", "float64", "float16", "bfloat16"];
const dtypes: readonly DType[] = [...floats, "int64", "int32", "uint32", "int8", "uint8"];

function drawn(random: Random) {
  const whole = (most: number) => 1 + Math.floor(random.next() * most);
  const dtype = dtypes[whole(dtypes.length) - 1];
  const length = Math.round(300 ** random.next());
  const [before, after] = random.next() < 0.5 ? [whole(60), 1] : [whole(5), whole(20)];
  const isFloat = dtype.includes("float");
  const span = random.next() < 0.5 ? 4 : dtype === "int8" || dtype === "uint8" ? 100 : 30_000;
  const low = dtype === "uint32" || dtype === "uint8" ? 0 : -span / 2;
  // int64 numbers beyond 32 bits need other keys
  const scale = dtype === "int64" && random.next() < 0.5 ? 2 ** 30 : 1;
  const element = () =>
    isFloat && random.next() < 0.1
      ? special[whole(special.length) - 1]
      : scale * (low + Math.floor(random.next() * span));
  const values = Array.from({ length: before * length * after }, element);
  const make = () => toDType(tensor(values, { shape: [before, length, after], dtype: "float64" }), dtype);
  return { make, dtype, length, before, after, whole };
}

const numbers = (x: Tensor): number[] => Array.from(toDType(x, "float64").dataSync(), Number);

/** The slices along axis 1 in row-major order of the other axes. */
function slicesOf(x: Tensor, { before, length, after }: { before: number; length: number; after: number }) {
  const stored = numbers(x);
  return Array.from({ length: before * after }, (_, slice) => {
    const start = Math.floor(slice / after) * length * after + (slice % after);
    return Array.from({ length }, (_, index) => stored[start + index * after]);
  });
}

const orderOf = (slice: readonly number[], sign = 1): number[] =>
  Array.from(slice.keys()).sort((a, b) => sign * compare(slice[a], slice[b]) || a - b);

/** The last index of the most frequent number; the smallest number of several. NaN equals nothing. */
function modeOf(slice: readonly number[]): number {
  const order = orderOf(slice);
  let [longest, found, run] = [1, order[0], 1];
  for (let at = 1; at < order.length; at++) {
    run = slice[order[at]] === slice[order[at - 1]] ? run + 1 : 1;
    if (run > longest) [longest, found] = [run, order[at]];
  }
  return found;
}

test("sort, kthvalue, median, nanmedian, mode and quantile of short slices", () => {
  const random = new Random(37);
  for (let drawing = 0; drawing < 30; drawing++) {
    const given = drawn(random);
    const { length, dtype } = given;
    const x = withBackend("cpu", given.make);
    const slices = slicesOf(x, given);
    const k = given.whole(length);
    const descending = random.next() < 0.5;
    const orders = slices.map((slice) => orderOf(slice));
    const sorted = slices.map((slice) => orderOf(slice, descending ? -1 : 1));
    const count = (slice: readonly number[]) => slice.filter((value) => !Number.isNaN(value)).length;
    const middle = slices.map((slice, at) => orders[at][count(slice) < length ? count(slice) : (length - 1) >> 1]);
    const among = slices.map((slice, at) => orders[at][Math.max(count(slice) - 1, 0) >> 1]);
    const expected = { sorted, kth: orders.map((order) => order[k - 1]), middle, among, modes: slices.map(modeOf) };
    const found = onEach(() => {
      const result = sort(x, { dim: 1, descending });
      return {
        sorted: slicesOf(result.indices, given),
        kth: numbers(kthvalue(x, k, { dim: 1 }).indices),
        middle: numbers(median(x, { dim: 1 }).indices),
        among: numbers(nanmedian(x, { dim: 1 }).indices),
        modes: numbers(mode(x, { dim: 1 }).indices),
      };
    });
    for (const each of found) expect(each).toEqual(expected);
    if (!floats.includes(dtype)) continue;
    const lower = slices.map((slice, at) =>
      count(slice) < length ? Number.NaN : slice[orders[at][Math.floor(Math.fround((length - 1) * 0.25))]] + 0,
    );
    for (const each of onEach(() => numbers(quantile(x, 0.25, { dim: 1, interpolation: "lower" }))))
      expect(each.map((value) => value + 0)).toEqual(lower);
  }
});

test("searches for many values", () => {
  const random = new Random(38);
  const kinds = dtypes.filter((dtype) => dtype !== "int8" && dtype !== "uint8");
  for (let drawing = 0; drawing < 40; drawing++) {
    const dtype = kinds[drawing % kinds.length];
    const [size, count, lists] = [90, 70, 4].map((most) => Math.max(1, Math.floor(most * random.next() ** 2)));
    const value = () => Math.floor(random.next() * 60);
    const rows = Array.from({ length: lists }, () => Array.from({ length: size }, value).sort((a, b) => a - b));
    const wanted = Array.from({ length: lists * count }, () =>
      dtype.includes("float") && random.next() < 0.1 ? Number.NaN : value(),
    );
    const make = (values: readonly number[], shape: number[]) =>
      toDType(tensor([...values], { shape, dtype: "float64" }), dtype);
    for (const right of [false, true]) {
      const before = (element: number, target: number) => !(right ? element > target : element >= target);
      const expected = wanted.map(
        (target, at) => rows[Math.floor(at / count)].filter((element) => before(element, target)).length,
      );
      for (const found of onEach(() =>
        numbers(searchsorted(make(rows.flat(), [lists, size]), make(wanted, [lists, count]), { right })),
      ))
        expect(found).toEqual(expected);
      const first = wanted.slice(0, count);
      for (const found of onEach(() => numbers(bucketize(make(first, [count]), make(rows[0], [size]), { right }))))
        expect(found).toEqual(expected.slice(0, count));
    }
  }
});
