/**
 * Scans, counts and searches that cpu computes in one native call: drawn sizes, dtypes and layouts, compared with
 * formulas in float64.
 */
import { expect, test } from "bun:test";
import * as o from "../../src/index.ts";
import { type Tensor, tensor, toDType, withBackend } from "../../src/index.ts";
import { elementCount } from "../../src/tensor/shape.ts";
import { draws, expectNear, floats, numbers, onCpu, range, rowsOf, total } from "./drawn_calls.ts";

const { random, drawn, pick, sized } = draws(7302);

/** A drawn shape, one of its axes, and the slices along it in the order of the other axes. */
function along(values: readonly number[], shape: readonly number[], axis: number): number[][] {
  const inner = elementCount(shape.slice(axis + 1));
  const lines = elementCount(shape) / shape[axis];
  return range(lines).map((line) => {
    const start = Math.floor(line / inner) * inner * shape[axis] + (line % inner);
    return range(shape[axis]).map((at) => values[start + at * inner]);
  });
}

const shapes = () => pick([[1 + sized(90)], [sized(40), 1 + sized(60)], [sized(5), 1 + sized(12), 1 + sized(9)]]);

onCpu("trapezoid and cumulativeTrapezoid", () => {
  const [shape, dtype, dx] = [shapes(), pick(floats), pick([1, 0.5, -2])];
  const dim = random.integer(0, shape.length - 1);
  const y = drawn(shape, dtype);
  const lines = along(numbers(y), shape, dim);
  const areas = lines.map((line) => line.slice(1).map((value, at) => ((value + line[at]) / 2) * dx));
  if (shape[dim] < 2) return;
  expectNear(o.trapezoid(y, { dx, dim }), areas.map(total), dtype, `trapezoid ${shape} ${dim}`);
  const found = o.cumulativeTrapezoid(y, { dx, dim });
  const expected = areas.map((line) => line.map((_, at) => total(line.slice(0, at + 1))));
  const lineShape = shape.with(dim, shape[dim] - 1);
  expect(found.shape).toEqual(lineShape);
  const got = tensor(along(numbers(found), lineShape, dim).flat());
  expectNear(got, expected.flat(), dtype === "float64" ? "float32" : dtype, "cumulativeTrapezoid");
});

onCpu("logcumsumexp", () => {
  const [shape, dtype] = [shapes(), pick(floats)];
  const dim = random.integer(0, shape.length - 1);
  const special = [Infinity, -Infinity, Number.NaN, 80, -80];
  const x = drawn(shape, dtype, () => (random.next() < 0.04 ? pick(special) : random.next() * 8 - 4));
  const found = o.logcumsumexp(x, dim);
  const expected = along(numbers(x), shape, dim).map((line) =>
    line.map((_, at) => {
      const most = Math.max(...line.slice(0, at + 1));
      if (!Number.isFinite(most)) return most;
      return most + Math.log(total(line.slice(0, at + 1).map((value) => Math.exp(value - most))));
    }),
  );
  const got = tensor(along(numbers(found), shape, dim).flat(), { dtype: "float64" });
  expectNear(got, expected.flat(), dtype, "logcumsumexp");
});

onCpu("isin of floats, integers and bools", () => {
  const dtype = pick([...floats, "int64", "int32", "uint8", "bool"] as const);
  const isFloating = dtype.includes("float");
  const most = pick([3, 40, 100_000]);
  const value = () => {
    if (isFloating && random.next() < 0.05) return pick([Number.NaN, Infinity, -0, 0]);
    const whole = random.integer(0, dtype === "bool" ? 1 : dtype === "uint8" ? 255 : most);
    return dtype.startsWith("int") && random.next() < 0.5 ? -whole : whole;
  };
  const elements = drawn([sized(30), sized(20)], dtype, value);
  const others = drawn([sized(300)], dtype, value);
  const among = new Set(numbers(others).filter((each) => !Number.isNaN(each)));
  const expected = numbers(elements).map((each) => among.has(each === 0 ? 0 : each));
  expect(numbers(o.isin(elements, others)).map(Boolean)).toEqual(expected);
  expect(numbers(o.isin(elements, others, { invert: true })).map(Boolean)).toEqual(expected.map((each) => !each));
});

onCpu("histc, histogram and bincount", () => {
  const dtype = pick(["float64", "float32"] as const);
  const [count, bins] = [sized(500), sized(40)];
  const x = drawn(pick([[count], [sized(20), sized(20)]]), dtype, () => random.integer(-64, 64) / 16);
  const values = numbers(x);
  const counted = (first: number, last: number): number[] => {
    const counts = new Array<number>(bins).fill(0);
    const edges = range(bins + 1).map((at) => (at === bins ? last : first + ((last - first) * at) / bins));
    const stored = numbers(toDType(tensor(edges, { dtype: "float64" }), dtype));
    for (const value of values) {
      if (value < stored[0] || value > stored[bins]) continue;
      counts[value === stored[bins] ? bins - 1 : stored.findLastIndex((edge) => edge <= value)]++;
    }
    return counts;
  };
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const spread = (margin: number): [number, number] => (least < most ? [least, most] : [least - margin, most + margin]);
  expect(numbers(o.histc(x, { bins, min: -2, max: 3 }))).toEqual(counted(-2, 3));
  expect(numbers(o.histc(x, { bins }))).toEqual(counted(...spread(1)));
  const { hist, binEdges } = o.histogram(x, bins);
  expect(numbers(hist)).toEqual(counted(...spread(0.5)));
  expect([binEdges.shape, numbers(binEdges)[0]]).toEqual([[bins + 1], spread(0.5)[0]]);
  const wholes = range(count).map(() => random.integer(0, 30));
  const index = toDType(tensor(wholes), pick(["int64", "int32"] as const)) as Tensor<"int64">;
  const expected = range(Math.max(...wholes) + 1).map((each) => wholes.filter((value) => value === each).length);
  expect(numbers(o.bincount(index))).toEqual(expected);
});

test("bounds that are not finite are errors", () =>
  withBackend("cpu", () => {
    const ranges = "expected finite, ascending";
    expect(() => o.histogram(tensor([1, Number.NaN]), 3)).toThrow(ranges);
    expect(() => o.histc(tensor([1, Infinity]))).toThrow(ranges);
    expect(() => o.histc(tensor([1]), { min: 3, max: 1 })).toThrow(ranges);
    expect(() => o.bincount(tensor([2n, -1n]))).toThrow("-1");
    expect(numbers(o.histogram(o.zeros([0]), 2).binEdges)).toEqual([0, 0.5, 1]);
  }));

onCpu("indexAdd of short slices that are not adjacent", () => {
  const dtype = pick(["float32", "bfloat16", "float16", "float64"] as const);
  const [rows, size, count] = [sized(300), sized(12), sized(12)];
  const whole = () => random.integer(-8, 8);
  const [x, source] = [drawn([rows, size], dtype, whole), drawn([rows, count], dtype, whole)];
  const places = range(count).map(() => random.integer(0, size - 1));
  const index = toDType(tensor(places), "int64") as Tensor<"int64">;
  const [lines, added] = [rowsOf(numbers(x), size), numbers(source)];
  for (const [row, line] of lines.entries())
    for (const [at, place] of places.entries()) line[place] += added[row * count + at];
  expect(numbers(o.indexAdd(x, 1, index, source as never))).toEqual(lines.flat());
});

onCpu("searchsorted keeps the shape of the values", () => {
  const size = sized(40);
  const edges = range(size).map((at) => at * 2);
  const values = drawn([sized(9), sized(9)], "float32", () => random.integer(-2, 2 * size));
  const right = random.next() < 0.5;
  const found = o.searchsorted(toDType(tensor(edges), "float32") as Tensor, values, { right });
  expect(found.shape).toEqual(values.shape);
  const places = numbers(values).map((value) => edges.filter((edge) => (right ? edge <= value : edge < value)).length);
  expect(numbers(found)).toEqual(places);
});

onCpu("quantile and nanquantile", () => {
  const [shape, dtype] = [shapes(), pick(["float64", "float32"] as const)];
  const dim = random.integer(0, shape.length - 1);
  const x = drawn(shape, dtype, () => (random.next() < 0.02 ? Number.NaN : random.integer(-64, 64) / 8));
  const chances = range(sized(3)).map(() => random.integer(0, 8) / 8);
  const interpolation = pick(["linear", "lower", "higher", "midpoint", "nearest"] as const);
  const between = (sorted: readonly number[], chance: number): number => {
    if (sorted.length === 0) return Number.NaN;
    const place = chance * (sorted.length - 1);
    const [below, above] = [Math.floor(place), Math.ceil(place)];
    const half = place - below === 0.5;
    const nearest = half ? (below % 2 === 0 ? below : above) : Math.round(place);
    if (interpolation === "nearest") return sorted[nearest];
    const weight = { linear: place - below, lower: 0, higher: 1, midpoint: 0.5 }[interpolation];
    return sorted[below] + weight * (sorted[above] - sorted[below]);
  };
  const lines = along(numbers(x), shape, dim).map((line) => ({
    hasNan: line.some(Number.isNaN),
    sorted: line.filter((value) => !Number.isNaN(value)).toSorted((a, b) => a - b),
  }));
  const expected = (skips: boolean) =>
    chances.flatMap((q) => lines.map(({ hasNan, sorted }) => (hasNan && !skips ? Number.NaN : between(sorted, q))));
  const found = o.quantile(x, chances, { dim, interpolation, keepdim: true });
  expect(found.shape).toEqual([chances.length, ...shape.with(dim, 1)]);
  expectNear(found, expected(false), dtype, `quantile ${interpolation}`);
  expectNear(o.nanquantile(x, chances, { dim, interpolation }), expected(true), dtype, "nanquantile");
  const whole = o.nanquantile(x, 0.5);
  const sorted = numbers(x)
    .filter((value) => !Number.isNaN(value))
    .toSorted((a, b) => a - b);
  expect(whole.shape).toEqual([]);
  if (interpolation === "linear") expectNear(whole, [between(sorted, 0.5)], dtype, "nanquantile of all");
});

onCpu("mode", () => {
  const [shape, dtype] = [shapes(), pick([...floats, "int64", "int32", "uint8", "bool"] as const)];
  const dim = random.integer(0, shape.length - 1);
  const isFloating = dtype.includes("float");
  const x = drawn(shape, dtype, () => {
    if (isFloating && random.next() < 0.1) return pick([Number.NaN, Infinity, -0, 0]);
    return random.integer(dtype === "uint8" || dtype === "bool" ? 0 : -3, dtype === "bool" ? 1 : 3);
  });
  const expected = along(numbers(x), shape, dim).map((line) => {
    const counts = new Map<number, number>();
    for (const value of line) if (!Number.isNaN(value)) counts.set(value + 0, (counts.get(value + 0) ?? 0) + 1);
    if (counts.size === 0) return { value: Number.NaN, at: line.length };
    const most = Math.max(...counts.values());
    const value = Math.min(...[...counts].flatMap(([each, count]) => (count === most ? [each] : [])));
    return { value, at: line.lastIndexOf(value) };
  });
  const { values, indices } = o.mode(x, dim);
  expect(numbers(values).map((value) => value + 0)).toEqual(expected.map(({ value }) => value));
  const places = numbers(indices);
  for (const [at, line] of expected.entries()) if (!Number.isNaN(line.value)) expect(places[at]).toBe(line.at);
});
