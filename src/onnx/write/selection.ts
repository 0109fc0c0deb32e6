/** Writers of indexing, sorting, searching and spectra. */
import { lastElement } from "../../core/collections.ts";
import type { ComplexTransform, RealTransform } from "../../fft/primitive.ts";
import type { BagAttributes } from "../../ops/embedding/primitive.ts";
import type {
  IndexAttributes,
  ScatterAttributes,
  Scattering,
  TriangleAttributes,
} from "../../ops/indexing/primitive.ts";
import type { OrderStatistic, SortAttributes } from "../../ops/sorting/primitive.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { rowMajorStrides } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Formulas } from "./formulas.ts";
import type { Recorder } from "./recorder.ts";
import { Unwritable } from "./unwritable.ts";
import type { Writer, Writers } from "./writer.ts";

/** An index that is the same along all other axes selects whole slices, as in an embedding. */
const gather: Writer = (recorder, { inputs: [x, index], attributes }) => {
  const { dim } = attributes as IndexAttributes;
  const isSame = index.strides.every((stride, axis) => axis === dim || stride === 0 || index.shape[axis] === 1);
  const isWhole = x.shape.every((size, axis) => axis === dim || size === index.shape[axis]);
  if (!isSame || !isWhole)
    return recorder.node("GatherElements", [recorder.name(x), recorder.name(index)], { axis: dim });
  const flat = recorder.node("Reshape", [recorder.broadcastName(index), { sizes: [index.shape[dim]] }]);
  return recorder.node("Gather", [recorder.name(x), flat], { axis: dim });
};

const combinations: Readonly<Record<Scattering, string>> = {
  sum: "add",
  prod: "mul",
  amax: "max",
  amin: "min",
  last: "none",
};

/** The neutral element of a reduction. */
const neutral = (way: Scattering, dtype: DType): number => {
  if (way === "sum" || way === "last") return 0;
  if (way === "prod") return 1;
  if (isFloat(dtype)) return way === "amax" ? -Infinity : Infinity;
  const limits: Partial<Record<DType, readonly [number, number]>> = {
    uint8: [0, 255],
    int8: [-128, 127],
    int32: [-(2 ** 31), 2 ** 31 - 1],
    uint32: [0, 2 ** 32 - 1],
    int64: [-(2 ** 53), 2 ** 53],
    bool: [0, 1],
  };
  const [least, most] = limits[dtype]!;
  return way === "amax" ? least : most;
};

const scatter: Writer = (recorder, { inputs: [x, index, source], attributes }) => {
  const { way, includesSelf, dim } = attributes as ScatterAttributes;
  const places = recorder.name(index);
  const put = (into: string, elements: string, reduction: string): string =>
    recorder.node("ScatterElements", [into, places, elements], { axis: dim, reduction });
  let start = recorder.name(x);
  if (!includesSelf && way !== "last") {
    const one = recorder.scalar(neutral(way, x.dtype), x.dtype);
    start = put(start, recorder.node("Expand", [one, { sizes: index.shape }]), "none");
  }
  return put(start, recorder.name(source), combinations[way]);
};

const triangle: Writer = (recorder, { inputs: [x], attributes }) => {
  const { lower, diagonal } = attributes as TriangleAttributes;
  return recorder.node("Trilu", [recorder.name(x), recorder.numbers([diagonal], [], "int64")], {
    upper: lower ? 0 : 1,
  });
};

/** Row-major positions of indices into several axes; negative ones count from the end. */
const indexPlaces: Writer = (recorder, { inputs, outputs: [places], attributes }) => {
  const { sizes } = attributes as { sizes: readonly number[] };
  const strides = rowMajorStrides(sizes);
  const graph = new Formulas(recorder, "int64");
  const terms = inputs.map((index, at) => {
    const name = recorder.broadcastName(index);
    const whole = index.dtype === "int64" ? name : graph.cast(name, "int64");
    const wrapped = graph.where(graph.of("Less", whole, 0), graph.of("Add", whole, { sizes: [sizes[at]] }), whole);
    return graph.of("Mul", wrapped, { sizes: [strides[at]] });
  });
  return graph.reshape(
    graph.of(
      "Expand",
      terms.reduce((a, b) => graph.of("Add", a, b)),
      { sizes: places.shape },
    ),
    places.shape,
  );
};

const oneHot: Writer = (recorder, { inputs: [index], outputs: [y] }) => {
  const values = recorder.numbers([0, 1], [2], y.dtype);
  return recorder.node("OneHot", [recorder.name(index), { sizes: [lastElement(y.shape)] }, values], { axis: -1 });
};

/** The dtype that runtimes can sort, for each dtype. */
const sortable = (dtype: DType): DType =>
  isFloat(dtype) || dtype === "int64" || dtype === "int32" ? dtype : dtype === "uint32" ? "int64" : "int32";

const sort: Writer = (recorder, { inputs: [x], outputs: [values], attributes }) => {
  const { dim, descending } = attributes as SortAttributes;
  const graph = new Formulas(recorder, x.dtype);
  const kept = sortable(x.dtype);
  const name = kept === x.dtype ? recorder.name(x) : graph.cast(recorder.name(x), kept);
  const given = { axis: dim, largest: descending ? 1 : 0, sorted: 1 };
  const [sorted, places] = recorder.nodeOf("TopK", [name, { sizes: [values.shape[dim]] }], given, 2);
  return [kept === x.dtype ? sorted : graph.cast(sorted, x.dtype), places];
};

/**
 * The index of the median. With a NaN, it is the index of the first NaN for `median`, and of the numbers' median for
 * `nanmedian`.
 */
const orderStatistic: Writer = (recorder, { inputs: [sorted, indices], attributes }) => {
  const { statistic, dim: axis } = attributes as { statistic: OrderStatistic; dim: number };
  if (statistic === "mode") throw new Unwritable("mode");
  const graph = new Formulas(recorder, "int64");
  const size = sorted.shape[axis];
  const [name, places] = [recorder.name(sorted), recorder.name(indices)];
  const middle = Math.floor((size - 1) / 2);
  if (!isFloat(sorted.dtype)) return graph.with({ axis }, "Gather", places, recorder.numbers([middle], [1], "int64"));
  const nans = graph.with(
    { keepdims: 1 },
    "ReduceSum",
    graph.cast(graph.of("IsNaN", name), "int64"),
    recorder.numbers([axis], [1], "int64"),
  );
  const others = graph.of("Sub", size, nans);
  const place =
    statistic === "median"
      ? graph.where(graph.of("Greater", nans, 0), others, middle)
      : graph.of("Max", graph.of("Div", graph.of("Sub", others, 1), 2), 0);
  return graph.with({ axis }, "GatherElements", places, place);
};

/** Counts the sorted elements below each value; or at most equal to it, if `right`. */
const searchSorted: Writer = (recorder, { inputs: [sorted, values], attributes }) => {
  const { right } = attributes as { right: boolean };
  const graph = new Formulas(recorder, sorted.dtype);
  const each = graph.of("Unsqueeze", recorder.name(values), { sizes: [values.rank] });
  const list = graph.of("Unsqueeze", recorder.name(sorted), { sizes: [sorted.rank - 1] });
  const isBelow = graph.of(right ? "LessOrEqual" : "Less", list, each);
  return graph.with({ keepdims: 0 }, "ReduceSum", graph.cast(isBelow, "int64"), { sizes: [values.rank] });
};

/** Counts elements between edges, or adds their weights. The last bin includes its upper edge. */
const histogram: Writer = (recorder, { inputs: [x, edges, weights], outputs: [y] }) => {
  const graph = new Formulas(recorder, x.dtype);
  const bins = y.size;
  const rows = (name: string) => graph.of("Unsqueeze", name, { sizes: [1] });
  const part = (from: number, to: number) =>
    recorder.node("Slice", [recorder.name(edges), { sizes: [from] }, { sizes: [to] }, { sizes: [0] }]);
  const [value, low, high] = [rows(recorder.name(x)), part(0, bins), part(1, bins + 1)];
  const isLast = graph.of("And", graph.of("Equal", value, high), lastOf(recorder, bins));
  const isBelow = graph.of("Or", graph.of("Less", value, high), isLast);
  const isInside = graph.cast(graph.of("And", graph.of("GreaterOrEqual", value, low), isBelow), y.dtype);
  const counted = weights ? graph.of("Mul", isInside, rows(recorder.name(weights))) : isInside;
  return graph.with({ keepdims: 0 }, "ReduceSum", counted, { sizes: [0] });
};

const lastOf = (recorder: Recorder, bins: number): string =>
  recorder.numbers(
    Array.from({ length: bins }, (_, at) => Number(at === bins - 1)),
    [bins],
    "bool",
  );

/** Replaces the selected elements of x by the source's elements, in order. */
const maskedScatter: Writer = (recorder, { inputs: [x, mask, source], outputs: [y] }) => {
  const graph = new Formulas(recorder, "int64");
  const flags = graph.reshape(recorder.name(mask), [y.size]);
  const order = graph.of("CumSum", graph.cast(flags, "int64"), recorder.numbers([0], [], "int64"));
  const places = graph.of("Max", graph.of("Sub", order, 1), 0);
  const elements = graph.with({ axis: 0 }, "Gather", graph.reshape(recorder.name(source), [source.size]), places);
  return graph.where(recorder.name(mask), graph.reshape(elements, y.shape), recorder.name(x));
};

/** The sum, mean or largest elements of the rows of each bag. */
const embeddingBag: Writer = (recorder, { inputs, outputs: [y, counts], attributes }) => {
  const { mode, bags, length, padding, hasFactors } = attributes as BagAttributes;
  const [indices, offsets, factors, table] = inputs;
  if (length === null && mode === "max") throw new Unwritable("bags with offsets and the mode max");
  const graph = new Formulas(recorder, table.dtype);
  const places = recorder.name(indices);
  const rows = graph.with({ axis: 0 }, "Gather", recorder.name(table), graph.reshape(places, [indices.size]));
  const isUsed = graph.of("Not", graph.of("Equal", places, recorder.scalar(padding, indices.dtype)));
  const used = graph.reshape(graph.cast(isUsed, table.dtype), [indices.size]);
  const factor = hasFactors ? graph.of("Mul", used, graph.reshape(recorder.name(factors), [indices.size])) : used;
  if (mode === "max") {
    const column = graph.of("Unsqueeze", graph.cast(used, "bool"), { sizes: [1] });
    const kept = graph.reshape(graph.where(column, rows, -Infinity), [bags, length!, table.shape[1]]);
    const most = graph.with({ keepdims: 0 }, "ReduceMax", kept, { sizes: [1] });
    return [graph.where(graph.of("IsInf", most), 0, most)];
  }
  const members = membersOf(recorder, { bags, length, total: indices.size, offsets, dtype: table.dtype });
  const sums = graph.of("MatMul", graph.of("Mul", members, factor), rows);
  const numbers = graph.with({ keepdims: 0 }, "ReduceSum", graph.of("Mul", members, used), { sizes: [1] });
  const divisor = graph.of("Unsqueeze", graph.of("Max", numbers, 1), { sizes: [1] });
  const result = mode === "mean" ? graph.of("Div", sums, divisor) : sums;
  return [result, counts && counts.dtype !== y.dtype ? graph.cast(numbers, counts.dtype) : numbers];
};

interface Members {
  readonly bags: number;
  readonly length: number | null;
  readonly total: number;
  readonly offsets: Tensor | undefined;
  readonly dtype: DType;
}

/** The matrix [bags, total] that is 1 where an index belongs to a bag, else 0. */
function membersOf(recorder: Recorder, { bags, length, total, offsets, dtype }: Members): string {
  const graph = new Formulas(recorder, "int64");
  const place = recorder.numbers(
    Array.from({ length: total }, (_, at) => at),
    [total],
    "int64",
  );
  const edges = (from: number): string => {
    const list = Array.from({ length: bags }, (_, bag) => (bag + from) * (length ?? 0));
    if (length !== null) return recorder.numbers(list, [bags, 1], "int64");
    const name = recorder.name(offsets!);
    const all = offsets!.dtype === "int64" ? name : graph.cast(name, "int64");
    const part = recorder.node("Slice", [all, { sizes: [from] }, { sizes: [from + bags] }, { sizes: [0] }]);
    return graph.of("Unsqueeze", part, { sizes: [1] });
  };
  const isAfter = graph.of("GreaterOrEqual", place, edges(0));
  return graph.cast(graph.of("And", isAfter, graph.of("Less", place, edges(1))), dtype);
}

type WindowAttributes = Record<"kernel" | "dilation" | "padding" | "stride" | "output", readonly number[]>;

/** The adjoint of windows: overlapping elements are added. */
const fold: Writer = (recorder, { inputs: [x], outputs: [y], attributes }) => {
  const { kernel, dilation, padding, stride, output } = attributes as WindowAttributes;
  const [images, channels] = x.shape;
  const area = (list: readonly number[]) => list.reduce((product, each) => product * each, 1);
  const graph = new Formulas(recorder, x.dtype);
  const columns = graph.reshape(recorder.name(x), [images, channels * area(kernel), area(output)]);
  const given = { dilations: dilation, strides: stride, pads: [...padding, ...padding] };
  return graph.with(given, "Col2Im", columns, { sizes: y.shape.slice(2) }, { sizes: kernel });
};

/** Distances between the rows of two lists of matrices. */
const cdist: Writer = (recorder, { inputs: [x, y], outputs: [out], attributes }) => {
  const { p, isTriangle } = attributes as { p: number; isTriangle: boolean };
  const graph = new Formulas(recorder, x.dtype);
  const [rows, columns] = [recorder.name(x), recorder.name(y)].map((name, at) =>
    graph.of("Unsqueeze", name, { sizes: [2 - at] }),
  ) as [string, string];
  const difference = graph.of("Abs", graph.of("Sub", rows, columns));
  const along = (operator: string, name: string) => graph.with({ keepdims: 0 }, operator, name, { sizes: [3] });
  const distances = distanceOf(graph, along, difference, p);
  if (!isTriangle) return distances;
  const count = x.shape[1];
  const places = Array.from({ length: count * count }, (_, at) => at).filter(
    (at) => at % count > Math.floor(at / count),
  );
  const flat = graph.reshape(distances, [count * count]);
  return graph.reshape(
    graph.with({ axis: 0 }, "Gather", flat, recorder.numbers(places, [places.length], "int64")),
    out.shape,
  );
};

function distanceOf(
  graph: Formulas,
  along: (operator: string, name: string) => string,
  difference: string,
  p: number,
): string {
  if (p === 1) return along("ReduceSum", difference);
  if (p === 2) return along("ReduceL2", difference);
  if (p === Infinity) return along("ReduceMax", difference);
  if (p === 0) return along("ReduceSum", graph.of("Sign", difference));
  return graph.of("Pow", along("ReduceSum", graph.of("Pow", difference, p)), 1 / p);
}

/** A transform of pairs along an axis. The standard divides the inverse by the length. */
const fft: Writer = (recorder, { inputs: [x], attributes }) => {
  const { axis, inverse, scale } = attributes as ComplexTransform;
  const graph = new Formulas(recorder, x.dtype);
  const factor = inverse ? scale * x.shape[axis] : scale;
  const result = graph.with({ axis, inverse: inverse ? 1 : 0 }, "DFT", recorder.name(x));
  return factor === 1 ? result : graph.of("Mul", result, factor);
};

/** Transforms rows of real numbers to half spectra or back, as a product with the transform's matrix. */
const realFft: Writer = (recorder, { inputs: [x], outputs: [y], attributes }) => {
  const { length, toReal, inverse, scale } = attributes as RealTransform;
  const graph = new Formulas(recorder, x.dtype);
  const half = Math.floor(length / 2) + 1;
  const sign = inverse ? 1 : -1;
  const matrix: number[] = [];
  const entry = (j: number, k: number, part: number): number => {
    const angle = (2 * Math.PI * ((j * k) % length)) / length;
    const value = part === 0 ? Math.cos(angle) : sign * Math.sin(angle);
    return Math.abs(value) < 1e-15 ? 0 : scale * value;
  };
  if (toReal)
    for (let k = 0; k < half; k++)
      for (const part of [0, 1])
        for (let j = 0; j < length; j++) {
          const pairs = k > 0 && 2 * k < length ? 2 : 1;
          matrix.push(pairs * (part === 0 ? entry(j, k, 0) : -entry(j, k, 1)));
        }
  else for (let j = 0; j < length; j++) for (let k = 0; k < half; k++) matrix.push(entry(j, k, 0), entry(j, k, 1));
  const rows = toReal ? graph.reshape(recorder.name(x), [...x.shape.slice(0, -2), 2 * half]) : recorder.name(x);
  const size = toReal ? [2 * half, length] : [length, 2 * half];
  return graph.reshape(graph.of("MatMul", rows, recorder.numbers(matrix, size, x.dtype)), y.shape);
};

/** The positions of nonzero elements, a row each. */
const nonzero: Writer = (recorder, { inputs: [x], outputs: [y] }) => {
  const places = recorder.node("NonZero", [recorder.name(x)]);
  recorder.setUnsized(y, recorder.node("Transpose", [places], { perm: [1, 0] }));
  return [];
};

const maskedSelect: Writer = (recorder, { inputs: [x, mask], outputs: [y] }) => {
  const flat = (tensor: Tensor) => recorder.node("Reshape", [recorder.name(tensor), { sizes: [tensor.size] }]);
  recorder.setUnsized(y, recorder.node("Compress", [flat(x), flat(mask)], { axis: 0 }));
  return [];
};

/** The first element of each run of equal elements, and its position. */
const runs: Writer = (recorder, { inputs: [x], outputs: [firsts, begins] }) => {
  const graph = new Formulas(recorder, x.dtype);
  const size = x.size;
  const name = recorder.name(x);
  const part = (from: number, to: number) =>
    recorder.node("Slice", [name, { sizes: [from] }, { sizes: [to] }, recorder.numbers([0], [1], "int64")]);
  const differs = graph.of("Not", graph.of("Equal", part(1, size), part(0, size - 1)));
  const places = Array.from({ length: size }, (_, at) => at);
  const starts = graph.with({ axis: 0 }, "Concat", recorder.numbers([1], [1], "bool"), differs);
  recorder.setUnsized(firsts, graph.with({ axis: 0 }, "Compress", name, starts));
  recorder.setUnsized(begins, graph.with({ axis: 0 }, "Compress", recorder.numbers(places, [size], "int64"), starts));
  return [];
};

/** Counts are only used to allocate the results of other primitives. Any other use is rejected. */
const maskStarts: Writer = () => [undefined];

export const selection: Writers = {
  gather,
  scatter,
  triangle,
  indexPlaces,
  oneHot,
  sort,
  orderStatistic,
  searchSorted,
  histogram,
  maskStarts,
  maskedScatter,
  nonzero,
  maskedSelect,
  runs,
  embeddingBag,
  fold,
  cdist,
  fft,
  realFft,
};
