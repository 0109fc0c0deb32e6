/**
 * Operations that cpu computes in one native call where other backends compose them: drawn odd sizes, dtypes and
 * layouts, compared with formulas in float64, or with the composition on the reference backend.
 */
import { expect, test } from "bun:test";
import * as o from "../../src/index.ts";
import { type DType, type Tensor, tensor, toDType, withBackend, withStrict } from "../../src/index.ts";
import { elementCount } from "../../src/tensor/shape.ts";
import { repeats } from "../support/repeats.ts";
import { Random } from "./samples.ts";

const random = new Random(8117);
const rounds = repeats({ usual: 24, all: 400 });
const bounds = { float64: 2 ** -44, float32: 2 ** -18, float16: 2 ** -8, bfloat16: 2 ** -5 } as const;
type Float = keyof typeof bounds;
const floats = Object.keys(bounds) as Float[];

const numbers = (x: Tensor): number[] => Array.from(toDType(x.detach(), "float64").dataSync() as Float64Array);
const pick = <T>(choices: readonly T[]): T => choices[random.integer(0, choices.length - 1)]!;
const sized = (most: number): number => Math.round((most + 0.49) ** random.next());

/** Draws a tensor, every other time with transposed memory. */
function drawn(shape: readonly number[], dtype: DType, values = () => random.next() * 4 - 2): Tensor {
  const list = Float64Array.from({ length: elementCount(shape) }, values);
  const x = toDType(tensor(list, { shape }), dtype) as Tensor;
  if (shape.length < 2 || random.next() < 0.5) return x;
  return o.transpose(o.transpose(x, 0, -1).contiguous(), 0, -1);
}

/** `scale` is the size of the terms of sums that may cancel. */
function expectNear(found: Tensor, expected: readonly number[], dtype: Float, what: string, scale = 1): void {
  const got = numbers(found);
  expect([what, got.length]).toEqual([what, expected.length]);
  for (const [at, value] of expected.entries()) {
    const isNear =
      Object.is(got[at], value) || Math.abs(got[at] - value) <= bounds[dtype] * Math.max(scale, Math.abs(value));
    const isRight = Number.isNaN(value) ? Number.isNaN(got[at]) : isNear;
    if (!isRight) expect([what, dtype, at, got[at]]).toEqual([what, dtype, at, value]);
  }
}

/** Runs drawn calls on cpu in strict mode, so that the fused call must succeed. */
const onCpu = (name: string, body: (round: number) => void): void =>
  test(name, () =>
    withBackend("cpu", () =>
      withStrict(true, () => {
        for (let round = 0; round < rounds; round++) body(round);
      }),
    ),
  );

const rowsOf = (values: readonly number[], width: number): number[][] =>
  Array.from({ length: values.length / width }, (_, row) => values.slice(row * width, (row + 1) * width));
const total = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0);

/** Returns the value and the gradient of a loss whose gradient is multiplied by drawn scales. */
function withGradient(x: Tensor, loss: (x: Tensor) => Tensor): { value: Tensor; gradient: Tensor; scales: number[] } {
  const variable = x.detach();
  variable.requiresGrad = true;
  const value = loss(variable);
  const scales = drawn(value.shape, value.dtype);
  const [gradient] = o.grad([value], [variable], { gradOutputs: [scales] });
  return { value, gradient, scales: numbers(scales) };
}

onCpu("multiMarginLoss and its gradient", () => {
  const [rows, classes, dtype] = [sized(60), sized(40), pick(["float64", "float32"] as const)];
  const x = drawn([rows, classes], dtype);
  const targets = Array.from({ length: rows }, () => random.integer(0, classes - 1));
  const factors = Array.from({ length: classes }, () => random.integer(1, 4));
  const weight = random.next() < 0.5 ? (toDType(tensor(factors), dtype) as Tensor) : undefined;
  const [p, margin] = [pick([1, 2] as const), random.integer(0, 3) / 2];
  const index = toDType(tensor(targets), pick(["int64", "int32"] as const));
  const { value, gradient, scales } = withGradient(x, (each) =>
    o.multiMarginLoss(each, index, { p, margin, ...(weight && { weight }), reduction: "none" }),
  );
  const expected = rowsOf(numbers(x), classes).map((scores, row) => {
    const factor = (weight ? factors[targets[row]] : 1) / classes;
    const apart = scores.map((score, j) =>
      j === targets[row] ? 0 : Math.max(0, margin - scores[targets[row]] + score),
    );
    const slopes = apart.map((each) => scales[row] * factor * (p === 1 ? Math.sign(each) : 2 * each));
    const own = -total(slopes);
    return { loss: factor * total(apart.map((each) => each ** p)), slopes: slopes.with(targets[row], own) };
  });
  const losses = expected.map(({ loss }) => loss);
  expectNear(value, losses, dtype, "losses");
  expectNear(
    gradient,
    expected.flatMap(({ slopes }) => slopes),
    dtype,
    "gradient",
  );
});

/** Compares rows with up to `most` targets each. */
function checkSeveralTargets(most: number): void {
  const [rows, classes, dtype] = [sized(30), sized(24), pick(["float64", "float32"] as const)];
  const x = drawn([rows, classes], dtype);
  const targets = Array.from({ length: rows }, () => {
    const count = random.integer(0, Math.min(classes, most));
    const named = Array.from({ length: count }, () => random.integer(0, classes - 1));
    return [...named, -1, ...new Array<number>(classes).fill(0)].slice(0, classes);
  });
  const index = toDType(tensor(targets.flat(), { shape: [rows, classes] }), "int64") as Tensor<"int64">;
  const { value, gradient, scales } = withGradient(x, (each) =>
    o.multilabelMarginLoss(each, index, { reduction: "none" }),
  );
  const expected = rowsOf(numbers(x), classes).map((scores, row) => {
    const end = targets[row].indexOf(-1);
    const named = targets[row].slice(0, end < 0 ? classes : end);
    const slopes = scores.map(() => 0);
    let loss = 0;
    for (const target of named)
      for (const [j, score] of scores.entries()) {
        const short = 1 - scores[target] + score;
        if (named.includes(j) || short <= 0) continue;
        loss += short / classes;
        slopes[j] += scales[row] / classes;
        slopes[target] -= scales[row] / classes;
      }
    return { loss, slopes };
  });
  const losses = expected.map(({ loss }) => loss);
  expectNear(value, losses, dtype, "losses");
  expectNear(
    gradient,
    expected.flatMap(({ slopes }) => slopes),
    dtype,
    "gradient",
  );
}
onCpu("multilabelMarginLoss and its gradient", () => checkSeveralTargets(5));

test("multilabelMarginLoss is NaN where a NaN is compared", () =>
  withBackend("cpu", () => {
    const scores = [[NaN, 1, 2], [NaN, 1, 2], [NaN, 1, 2], [1, 2, 3]]; // biome-ignore format: one line
    const targets = [[1n, -1n, 0n], [0n, -1n, 0n], [0n, 1n, 2n], [-1n, 0n, 0n]]; // biome-ignore format: one line
    const losses = o.multilabelMarginLoss(tensor(scores), tensor(targets), { reduction: "none" });
    expect(losses.toArray()).toEqual([NaN, NaN, 0, 0]);
  }));

test("targets out of range are errors", () =>
  withBackend("cpu", () => {
    expect(() => o.multiMarginLoss(o.ones([2, 3]), tensor([0n, 3n]))).toThrow("indices of 0 to 2, got 3");
    expect(() => o.multilabelMarginLoss(o.ones([1, 3]), tensor([[1n, 3n, -1n]]))).toThrow("got 3");
  }));

onCpu("nllLoss's gradient", () => {
  const [outer, classes, inner, dtype] = [sized(40), sized(12), sized(6), pick(floats)];
  const x = drawn([outer, classes, inner], dtype);
  const targets = Array.from({ length: outer * inner }, () => random.integer(0, classes - 1));
  const factors = Array.from({ length: classes }, () => random.integer(1, 4));
  const weight = random.next() < 0.5 ? (toDType(tensor(factors), dtype) as Tensor) : undefined;
  const ignoreIndex = pick([-100, random.integer(0, classes - 1)]);
  const reduction = pick(["none", "sum", "mean"] as const);
  let next = 0;
  const index = drawn([outer, inner], "int64", () => targets[next++]) as Tensor<"int64">;
  const { gradient, scales } = withGradient(x, (each) =>
    o.nllLoss(each, index, { ...(weight && { weight }), ignoreIndex, reduction }),
  );
  const factorOf = (target: number): number => (target === ignoreIndex ? 0 : weight ? factors[target] : 1);
  const divisor = reduction === "mean" ? total(targets.map(factorOf)) : 1;
  const expected = new Array<number>(outer * classes * inner).fill(0);
  for (const [at, target] of targets.entries()) {
    if (target === ignoreIndex) continue;
    const place = (Math.floor(at / inner) * classes + target) * inner + (at % inner);
    expected[place] = (-factorOf(target) * scales[reduction === "none" ? at : 0]) / divisor;
  }
  expectNear(gradient, expected, dtype, reduction);
});

onCpu("distances and cosines of rows", () => {
  const [rows, width, dtype] = [sized(50), sized(90), pick(floats)];
  const [x, y] = [drawn([rows, width], dtype), drawn(pick([[rows, width], [1, width], [width]]), dtype)];
  const first = rowsOf(numbers(x), width);
  const second = rowsOf(numbers(o.expand(y, [rows, width])), width);
  const apart = (eps: number) =>
    first.map((row, at) => Math.hypot(...row.map((value, i) => value - second[at][i] + eps)));
  const norm = (row: readonly number[]): number => Math.hypot(...row);
  const dot = (at: number): number => total(first[at].map((value, i) => value * second[at][i]));
  expectNear(o.pairwiseDistance(x, y), apart(1e-6), dtype, "pairwiseDistance");
  expect(o.pairwiseDistance(x, y, { keepdim: true }).shape).toEqual([rows, 1]);
  const cosines = first.map((row, at) => dot(at) / (norm(row) * norm(second[at])));
  expectNear(o.cosineSimilarity(x, y, { dim: -1 }), cosines, dtype, "cosineSimilarity");
  if (y.rank === 2 && y.shape[0] === rows) {
    expectNear(o.dist(x, y), [Math.hypot(...apart(0))], dtype, "dist");
    const transposed = [o.transpose(x, 0, 1), o.transpose(y, 0, 1)] as const;
    expectNear(o.cosineSimilarity(...transposed, { dim: 0 }), cosines, dtype, "cosineSimilarity along 0");
  }
  const sides = Array.from({ length: rows }, () => pick([1, -1, 0]));
  const margin = random.integer(-2, 2) / 4;
  const embedded = first.map(
    (row, at) => dot(at) / Math.sqrt((norm(row) ** 2 + 1e-12) * (norm(second[at]) ** 2 + 1e-12)),
  );
  const losses = embedded.map((c, at) => (sides[at] === 1 ? 1 - c : sides[at] === -1 ? Math.max(0, c - margin) : 0));
  const side = toDType(tensor(sides), dtype) as Tensor;
  expectNear(o.cosineEmbeddingLoss(x, y, side, { margin, reduction: "none" }), losses, dtype, "cosineEmbeddingLoss");
});

onCpu("groupNorm", () => {
  const [batch, groups, each, inner, dtype] = [sized(6), sized(5), sized(6), sized(40), pick(floats)];
  const channels = groups * each;
  const x = drawn([batch, channels, inner], dtype);
  const [weight, bias] = [drawn([channels], dtype), drawn([channels], dtype)];
  const given = { ...(random.next() < 0.7 && { weight }), ...(random.next() < 0.7 && { bias }) };
  const eps = 0.1;
  const [factors, terms] = [given.weight, given.bias].map((vector) => vector && numbers(vector));
  const expected = rowsOf(numbers(x), each * inner).flatMap((row, group) => {
    const mean = total(row) / row.length;
    const scale = 1 / Math.sqrt(total(row.map((value) => (value - mean) ** 2)) / row.length + eps);
    return row.map((value, at) => {
      const channel = (group % groups) * each + Math.floor(at / inner);
      return (value - mean) * scale * (factors?.[channel] ?? 1) + (terms?.[channel] ?? 0);
    });
  });
  expectNear(o.groupNorm(x, groups, { ...given, eps }), expected, dtype, "groupNorm");
});

onCpu("roll", () => {
  const dtype = pick(["float32", "bfloat16", "int64", "bool"] as const);
  const shape = Array.from({ length: random.integer(1, 4) }, () => sized(9));
  const x = drawn(shape, dtype, () => random.integer(0, 1));
  const shifts = shape.map(() => random.integer(-12, 12));
  const values = numbers(x);
  const strides = shape.map((_, axis) => elementCount(shape.slice(axis + 1)));
  const expected = values.map((_, at) => {
    const source = shape.map((size, axis) => {
      const place = (Math.floor(at / strides[axis]) % size) - shifts[axis];
      return (((place % size) + size) % size) * strides[axis];
    });
    return values[total(source)];
  });
  expect(
    numbers(
      o.roll(
        x,
        shifts,
        shape.map((_, axis) => axis),
      ),
    ),
  ).toEqual(expected);
});

onCpu("nansum and nanmean, with their gradients", () => {
  const [rows, width, dtype] = [sized(70), sized(120), pick(floats)];
  const x = drawn([rows, width], dtype, () => (random.next() < 0.2 ? Number.NaN : random.next() * 4 - 2));
  const dim = pick([0, 1]);
  const lines = rowsOf(numbers(dim === 1 ? x : o.transpose(x, 0, 1)), dim === 1 ? width : rows);
  const present = lines.map((line) => line.filter((value) => !Number.isNaN(value)));
  expectNear(o.nansum(x, dim), present.map(total), dtype, "nansum");
  expectNear(
    o.nanmean(x, dim),
    present.map((line) => total(line) / line.length),
    dtype,
    "nanmean",
  );
  const { gradient, scales } = withGradient(x, (each) => o.nansum(each, dim));
  const along = (at: number): number => (dim === 1 ? Math.floor(at / width) : at % width);
  expectNear(
    gradient,
    numbers(x).map((value, at) => (Number.isNaN(value) ? 0 : scales[along(at)])),
    dtype,
    "gradient",
  );
});

onCpu("median and nanmedian, with indices and gradients", () => {
  const dtype = pick(["float64", "float32", "bfloat16", "int64", "int32", "uint8"] as const);
  const [rows, width, dim] = [sized(40), sized(90), pick([0, 1])];
  const isFloat = !dtype.includes("int");
  const x = drawn([rows, width], dtype, () =>
    isFloat && random.next() < 0.02 ? Number.NaN : random.integer(isFloat ? -9 : 0, 9),
  );
  const lines = rowsOf(numbers(dim === 1 ? x : o.transpose(x, 0, 1)), dim === 1 ? width : rows);
  for (const [name, statistic] of Object.entries({ median: o.median, nanmedian: o.nanmedian })) {
    const { values, indices } = statistic(x, dim);
    const expected = lines.map((line) => {
      const nan = line.findIndex(Number.isNaN);
      const order = [...line.keys()].filter((at) => !Number.isNaN(line[at])).sort((a, b) => line[a] - line[b] || a - b);
      return nan >= 0 && (name === "median" || order.length === 0) ? nan : order[(order.length - 1) >> 1];
    });
    expect([name, numbers(indices)]).toEqual([name, expected]);
    expect([name, numbers(values)]).toEqual([name, expected.map((at, line) => lines[line][at])]);
    if (dtype !== "float64" && dtype !== "float32") continue;
    const { gradient, scales } = withGradient(x, (each) => statistic(each, dim).values);
    const slopes = new Array<number>(rows * width).fill(0);
    for (const [line, at] of expected.entries())
      slopes[dim === 1 ? line * width + at : at * width + line] += scales[line];
    expectNear(gradient, slopes, dtype, name);
  }
});

/** The result of a call on the reference backend, which composes it of other operations. */
const composed = (call: () => Tensor): number[] => withBackend("reference", () => numbers(call()));

onCpu("gridSample equals its composition", () => {
  const [batch, channels, height, width, places] = [sized(3), sized(9), sized(9), sized(9), sized(60)];
  const dtype = pick(["float64", "float32", "bfloat16"] as const);
  const x = drawn([batch, channels, height, width], dtype);
  const special = [Number.NaN, -1, 1, 0, 1e9, -1e9, Infinity];
  const grid = drawn([batch, 1, places, 2], dtype, () =>
    random.next() < 0.05 ? pick(special) : random.next() * 3 - 1.5,
  );
  const mode = pick(["bilinear", "nearest", "bicubic"] as const);
  const paddingMode = pick(["zeros", "border", "reflection"] as const);
  const options = { mode, paddingMode, alignCorners: random.next() < 0.5 };
  const what = `${mode} ${paddingMode} ${options.alignCorners}`;
  // a sum that rounds to a half, or a position at a border, may fall on the other side in another precision
  const call = () => o.gridSample(x, grid, options);
  if (dtype === "float64") expectNear(call(), composed(call), dtype, what);
  else expect([what, call().shape]).toEqual([what, [batch, channels, 1, places]]);
});

onCpu("gradients of gridSample equal those of its composition, of the second order too", (round) => {
  const [batch, channels, height, width, places] = [sized(3), sized(40), sized(9), sized(9), sized(150)];
  const x = drawn([batch, channels, height, width], "float64");
  const grid = drawn([batch, 1, places, 2], "float64", () =>
    random.next() < 0.1 ? pick([-1, 1, 0]) : random.next() * 4 - 2,
  );
  const mode = pick(["bilinear", "nearest", "bicubic"] as const);
  const options = {
    mode,
    paddingMode: pick(["zeros", "border", "reflection"] as const),
    alignCorners: random.next() < 0.5,
  };
  const cotangent = drawn([batch, channels, 1, places], "float64");
  const some = pick([[0, 1], [0], [1]]);
  const gradients = (createGraph: boolean): Tensor[] => {
    const inputs = [x.detach(), grid.detach()];
    const chosen = (createGraph ? [0, 1] : some).map((at) => inputs[at]);
    for (const each of chosen) each.requiresGrad = true;
    const result = o.gridSample(inputs[0], inputs[1], options);
    const first = o.grad([result], chosen, { gradOutputs: [cotangent], createGraph });
    if (!createGraph) return first;
    const total = first.map((each) => o.sum(o.square(each))).reduce((sum, each) => o.add(sum, each));
    return o.grad([total], chosen, { allowUnused: true }).map((each, at) => each ?? o.zerosLike(chosen[at]));
  };
  const what = JSON.stringify(options);
  for (const createGraph of mode !== "nearest" && round < 8 ? [false, true] : [false]) {
    const found = gradients(createGraph);
    const expected = found.map((_, at) => composed(() => gradients(createGraph)[at]));
    // The terms of slopes cancel where all elements of a place are the same, so errors are proportional to the terms.
    const scale = expected.flat().reduce((most, value) => Math.max(most, Math.abs(value)), 1);
    for (const [at, each] of found.entries())
      expectNear(each, expected[at], "float64", `${what} ${some} ${at} ${createGraph}`, mode === "bicubic" ? scale : 1);
  }
});

onCpu("gridSample of many channels has the bits of each channel", () => {
  const [batch, channels, height, width, places] = [sized(2), sized(50), sized(20), sized(20), sized(300)];
  const dtype = pick(["float64", "float32"] as const);
  const x = drawn([batch, channels, height, width], dtype);
  const grid = drawn([batch, 1, places, 2], dtype);
  const options = { mode: pick(["bilinear", "nearest", "bicubic"] as const), alignCorners: random.next() < 0.5 };
  const each = Array.from({ length: channels }, (_, at) => o.gridSample(o.narrow(x, 1, at, 1), grid, options));
  expect(numbers(o.gridSample(x, grid, options))).toEqual(numbers(o.cat(each, 1)));
});

onCpu("fractionalMaxPool2d equals its composition, with the indices and the gradient", () => {
  const [batch, channels, height, width, dtype] = [sized(3), sized(5), sized(12) + 2, sized(12) + 2, pick(floats)];
  const kernelSize = [random.integer(1, 2), random.integer(1, 2)];
  const outputSize = [random.integer(1, height + 1 - kernelSize[0]), random.integer(1, width + 1 - kernelSize[1])];
  const x = drawn([batch, channels, height, width], dtype);
  const randomSamples = drawn([batch, channels, 2], dtype, () => Math.floor(random.next() * 16) / 16);
  const call = (each: Tensor) =>
    o.fractionalMaxPool2d(each, kernelSize, { outputSize, randomSamples, returnIndices: true });
  const { values, indices } = call(x);
  expect(numbers(values)).toEqual(composed(() => call(x).values));
  expect(numbers(indices)).toEqual(composed(() => call(x).indices));
  const { gradient, scales } = withGradient(x, (each) => call(each).values);
  const expected = new Array<number>(x.size).fill(0);
  const outputs = outputSize[0] * outputSize[1];
  for (const [at, index] of numbers(indices).entries())
    expected[Math.floor(at / outputs) * height * width + index] += scales[at];
  expectNear(gradient, expected, dtype, "gradient");
});

onCpu("multilabelMarginLoss of rows with many targets, and its gradient", () => checkSeveralTargets(24));
