/** nn.init: PyTorch's formulas, checked by statistics of drawn sizes and by the definitions. */
import { expect, test } from "bun:test";
import * as o from "../../src/index.ts";
import { nn, type OrchardError, type Tensor } from "../../src/index.ts";
import { Random } from "../ops/samples.ts";

const { init } = nn;
const numbers = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number>, Number);
const failureOf = (call: () => unknown): OrchardError | undefined => {
  try {
    call();
  } catch (error) {
    return error as OrchardError;
  }
  return undefined;
};
const erf = (value: number): number => Number(o.erf(o.tensor(value, { dtype: "float64" })).item());
const phi = (value: number): number => (1 + erf(value / Math.SQRT2)) / 2;

/** Checks a sample by the Kolmogorov-Smirnov distance; 2.2 / √n is exceeded in 1 of 8,000 samples. */
function expectDistribution(sample: readonly number[], cdf: (value: number) => number): void {
  const sorted = sample.toSorted((a, b) => a - b);
  const distances = sorted.map((value, at) => Math.abs(cdf(value) - (at + 0.5) / sorted.length));
  expect(Math.max(...distances)).toBeLessThan(2.2 / Math.sqrt(sorted.length));
}

const normalCdf =
  (std: number, mean = 0) =>
  (value: number): number =>
    phi((value - mean) / std);
const uniformCdf = (bound: number) => (value: number) => Math.min(Math.max((value + bound) / (2 * bound), 0), 1);

/** A weight [outputs, inputs, …kernel] of about 4,000 elements, and its fans. */
function weightOf(random: Random, dtype: "float32" | "float64") {
  const kernel = Array.from({ length: random.integer(0, 3) }, () => random.integer(1, 3));
  const field = kernel.reduce((product, size) => product * size, 1);
  const outputs = random.integer(16, 80);
  const inputs = Math.ceil(4000 / (outputs * field));
  const weight = o.full([outputs, inputs, ...kernel], Number.NaN, { dtype, requiresGrad: true });
  return { weight, fanIn: inputs * field, fanOut: outputs * field };
}

const slopes = { relu: 0, leakyRelu: 0, tanh: 0, linear: 0, conv2d: 0, selu: 0, sigmoid: 0 } as const;
const gainOf = (name: keyof typeof slopes, slope: number): number =>
  ({
    linear: 1,
    conv2d: 1,
    sigmoid: 1,
    tanh: 5 / 3,
    relu: 2 ** 0.5,
    selu: 0.75,
    leakyRelu: (2 / (1 + slope * slope)) ** 0.5,
  })[name];

test("xavier and kaiming have the bounds and deviations of their formulas", () => {
  const random = new Random(11);
  for (let round = 0; round < 10; round++) {
    const { weight, fanIn, fanOut } = weightOf(random, round % 2 === 0 ? "float32" : "float64");
    const generator = new o.Generator(round);
    const gain = 0.5 + 2 * random.next();
    const xavier = gain * Math.sqrt(2 / (fanIn + fanOut));
    expect(init.xavierUniform_(weight, gain, { generator })).toBe(weight);
    expectDistribution(numbers(weight), uniformCdf(Math.sqrt(3) * xavier));
    init.xavierNormal_(weight, { gain, generator });
    expectDistribution(numbers(weight), normalCdf(xavier));
    const mode = random.integer(0, 1) === 0 ? "fanIn" : "fanOut";
    const names = Object.keys(slopes) as (keyof typeof slopes)[];
    const nonlinearity = names[random.integer(0, names.length - 1)];
    const a = random.next();
    const kaiming = gainOf(nonlinearity, a) / Math.sqrt(mode === "fanIn" ? fanIn : fanOut);
    init.kaimingUniform_(weight, a, mode, nonlinearity, { generator });
    expectDistribution(numbers(weight), uniformCdf(Math.sqrt(3) * kaiming));
    init.kaimingNormal_(weight, { a, mode, nonlinearity, generator });
    expectDistribution(numbers(weight), normalCdf(kaiming));
    init.kaimingNormal_(weight, { generator }); // leaky ReLU of slope 0, scaled by the number of inputs
    expectDistribution(numbers(weight), normalCdf(Math.sqrt(2 / fanIn)));
    expect([weight.requiresGrad, weight.isLeaf, weight.grad]).toEqual([true, true, null]);
  }
});

test("uniform_, normal_ and truncNormal_ draw from their distributions", () => {
  const random = new Random(12);
  for (const dtype of ["float32", "float64"] as const) {
    const generator = new o.Generator(4);
    const x = o.zeros([64, 64], { dtype, requiresGrad: true });
    const low = random.next() - 2;
    init.uniform_(x, low, low + 3, { generator });
    expectDistribution(numbers(x), (value) => (value - low) / 3);
    init.normal_(x, { mean: low, std: 0.3, generator });
    expectDistribution(numbers(x), normalCdf(0.3, low));
    const [mean, std, a, b] = [random.next(), 0.5 + random.next(), -1 + random.next(), 1 + random.next()];
    init.truncNormal_(x, mean, std, a, b, { generator });
    const [least, most] = [phi((a - mean) / std), phi((b - mean) / std)];
    expectDistribution(numbers(x), (value) => (phi((value - mean) / std) - least) / (most - least));
    expect(numbers(x).every((value) => value >= Math.fround(a) - 1e-7 && value <= Math.fround(b) + 1e-7)).toBe(true);
    init.truncNormal_(x, { generator });
    expectDistribution(numbers(x), (value) => (phi(value) - phi(-2)) / (phi(2) - phi(-2)));
  }
  expect(init.uniform_(o.zeros([3]), { generator: new o.Generator(1) }).toArray()).toEqual(
    o.rand([3], { generator: new o.Generator(1) }).toArray(),
  );
});

test("constant_, ones_, zeros_ and eye_ set their values", () => {
  const x = o.rand([3, 5], { requiresGrad: true });
  expect(new Set(numbers(init.constant_(x, 0.25)))).toEqual(new Set([0.25]));
  expect(new Set(numbers(init.ones_(x)))).toEqual(new Set([1]));
  expect(new Set(numbers(init.zeros_(x)))).toEqual(new Set([0]));
  expect(init.eye_(x).toArray()).toEqual(o.eye(3, 5).toArray());
});

test("a convolution with dirac_ keeps its channels in each group", () => {
  const random = new Random(13);
  for (let round = 0; round < 20; round++) {
    const [groups, height, inputs] = [random.integer(1, 3), random.integer(1, 3), random.integer(1, 4)];
    const rank = random.integer(1, 3);
    const kernel = Array.from({ length: rank }, () => 2 * random.integer(0, 1) + 1);
    const weight = init.dirac_(o.rand([groups * height, inputs, ...kernel], { requiresGrad: true }), groups);
    const x = o.rand([1, groups * inputs, ...kernel.map((size) => size + 2)]);
    const convolution = [o.conv1d, o.conv2d, o.conv3d][rank - 1] as typeof o.conv2d;
    const padding = kernel.map((size) => (size - 1) / 2) as unknown as [number, number];
    const y = o.noGrad(() => convolution(x, weight, { padding, groups }));
    for (let channel = 0; channel < groups * height; channel++) {
      const [group, at] = [Math.floor(channel / height), channel % height];
      const source = o.select(x, 1, group * inputs + Math.min(at, inputs - 1));
      const expected = at < inputs ? source : o.zerosLike(source);
      expect(o.select(y, 1, channel).toArray()).toEqual(expected.toArray());
    }
  }
});

test("dirac_ sets the element at half of each axis, also of even kernels, to 1", () => {
  const random = new Random(15);
  for (let round = 0; round < 20; round++) {
    const shape = [3, 2, ...Array.from({ length: random.integer(1, 3) }, () => random.integer(1, 4))];
    const weight = init.dirac_(o.rand(shape));
    const center = shape.slice(2).reduce<Tensor>((part, size) => o.select(part, 2, size >> 1), weight);
    expect([center.toArray(), weight.sum().item()]).toEqual([o.eye(3, 2).toArray(), 2]);
  }
});

test("orthogonal_ makes rows or columns orthonormal, with uniformly distributed directions", () => {
  const random = new Random(14);
  const means = [0, 0];
  for (let round = 0; round < 60; round++) {
    const shape = [random.integer(1, 8), random.integer(1, 4), random.integer(1, 2)];
    const dtype = round % 2 === 0 ? "float32" : "float64";
    const gain = 0.5 + random.next();
    const generator = new o.Generator(round);
    const x = init.orthogonal_(o.zeros(shape, { dtype, requiresGrad: true }), gain, { generator });
    const matrix = o.noGrad(() => o.reshape(x, [shape[0], -1]).to("float64"));
    const [rows, columns] = matrix.shape as unknown as [number, number];
    const product = rows <= columns ? matrix.matmul(matrix.mT) : matrix.mT.matmul(matrix);
    const identity = o.eye(Math.min(rows, columns), { dtype: "float64" }).mul(gain ** 2);
    expect(o.allClose(product, identity as Tensor, { atol: dtype === "float32" ? 1e-5 : 1e-12 })).toBe(true);
    const square = numbers(init.orthogonal_(o.zeros([2, 2]), { generator }));
    means[0] += square[0] / 60;
    means[1] += square[3] / 60;
  }
  // The entries of a uniform rotation or reflection have mean 0 and variance 1/2. The bound is 5 standard deviations of
  // the mean.
  for (const mean of means) expect(Math.abs(mean)).toBeLessThan(5 * Math.sqrt(0.5 / 60));
});

test("sparse_ has the number of zeros in each column, in random rows", () => {
  const generator = new o.Generator(9);
  const zerosByRow = new Array<number>(10).fill(0);
  for (const sparsity of [0, 0.1, 0.25, 0.9, 1]) {
    const columns = init.sparse_(o.ones([10, 200], { requiresGrad: true }), sparsity, { std: 0.5, generator });
    const rows = columns.toArray({ rank: 2 }) as number[][];
    for (let column = 0; column < 200; column++)
      expect(rows.filter((row) => row[column] === 0).length).toBe(Math.ceil(sparsity * 10));
    const others = rows.flat().filter((value) => value !== 0);
    if (others.length > 1000) expectDistribution(others, normalCdf(0.5));
    if (sparsity === 0.25)
      for (const [at, row] of rows.entries()) zerosByRow[at] = row.filter((each) => each === 0).length;
  }
  // 3 of 10 rows in 200 columns: 60 expected, with deviation √(200 · 0.3 · 0.7) = 6.5.
  for (const zeros of zerosByRow) expect(Math.abs(zeros - 60)).toBeLessThan(5 * 6.5);
});

test("gains match their formulas, and invalid tensors are errors", () => {
  for (const name of Object.keys(slopes) as (keyof typeof slopes)[])
    expect(init.calculateGain(name, 0.2)).toBeCloseTo(gainOf(name, 0.2), 15);
  expect(init.calculateGain("leakyRelu")).toBeCloseTo(Math.sqrt(2 / 1.0001), 15);
  const [vector, integers] = [o.zeros([3]), o.zeros([3, 3], { dtype: "int32" })];
  const failing: readonly [() => unknown, string][] = [
    [() => init.xavierUniform_(vector), "[init.xavierUniform_] expected a weight [outputs, inputs, …], got float32[3]"],
    [() => init.kaimingNormal_(vector), "[init.kaimingNormal_] expected a weight"],
    [() => init.eye_(o.zeros([2, 2, 2])), "[init.eye_] expected a matrix"],
    [() => init.dirac_(o.zeros([2, 2])), "[init.dirac_] expected 3 to 5 axes"],
    [() => init.dirac_(o.zeros([3, 2, 1]), 2), "expected groups to divide 3 output channels, got 2"],
    [() => init.orthogonal_(vector), "[init.orthogonal_] expected at least 2 axes"],
    [() => init.orthogonal_(integers), "expected a float dtype, got int32"],
    [() => init.sparse_(integers, 0.5), "expected a float dtype, got int32"],
    [() => init.sparse_(o.zeros([2, 2]), 1.5), "a number from 0 to 1"],
    [() => init.truncNormal_(vector, 0, 1, 2, 2), "expected a < b"],
    [() => init.truncNormal_(vector, 0, 0), "above 0"],
    [() => init.normal_(vector, 0, -1), "at least 0"],
    [() => init.uniform_(vector, 2, 1), "from ≤ to"],
    [() => init.uniform_(integers), "expected a float dtype, got int32"],
    [() => init.constant_(o.expand(o.zeros([1]), [3]), 1), "is expanded"],
    [() => init.calculateGain("gelu" as never), "nonlinearity"],
  ];
  for (const [call, message] of failing) expect(failureOf(call)?.message).toContain(message);
});
