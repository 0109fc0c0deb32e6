/** PyTorch's common forms of calls, compared with formulas in float64. */
import { describe, expect, test } from "bun:test";
import * as o from "../../src/index.ts";
import "../../src/test.ts";
import { manualSeed, type Tensor, tensor } from "../../src/index.ts";

/** Whole numbers from low to high, inclusive. */
const draw = (count: number, low: number, high: number): bigint[] =>
  Array.from(o.randint(low, high + 1, [count]).dataSync());

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);

describe.each(["cpu", "reference"] as const)("numbers can be given in other forms on %s", (backend) => {
  const on = (name: string, body: () => void) => test(name, () => o.withBackend(backend, body));

  on("negative indices of take, put and takeAlongDim count from the end", () => {
    manualSeed(1);
    for (let round = 0; round < 20; round++) {
      const sizes = draw(2, 1, 6).map(Number) as [number, number];
      const x = o.randn(sizes);
      const flat = numbersOf(x);
      const places = draw(5, -flat.length, flat.length - 1);
      const fromFront = places.map((place) => (Number(place) + flat.length) % flat.length);
      expect(numbersOf(o.take(x, tensor(places)))).toEqual(fromFront.map((place) => flat[place]));
      const source = o.randn([places.length]);
      const put = [...flat];
      for (const [at, place] of fromFront.entries()) put[place] = numbersOf(source)[at];
      expect(numbersOf(o.put(x, tensor(places), source))).toEqual(put);
      const columns = draw(sizes[0], -sizes[1], sizes[1] - 1);
      const chosen = o.takeAlongDim(x, tensor(columns).reshape([-1, 1]), 1);
      const expected = columns.map((column, row) => flat[row * sizes[1] + ((Number(column) + sizes[1]) % sizes[1])]);
      expect(numbersOf(chosen)).toEqual(expected);
    }
    for (const place of [-5n, 4n])
      expect(() => o.take(o.ones([2, 2]), tensor([place])).dataSync()).toThrow(/^\[take\] expected indices of/);
  });

  on("rmsNorm over several axes", () => {
    manualSeed(2);
    for (let round = 0; round < 10; round++) {
      const shape = draw(3, 1, 5).map(Number);
      const x = o.randn(shape, { dtype: "float64" });
      const [rows, size] = [shape[0], shape[1] * shape[2]];
      const weight = o.randn(shape.slice(1), { dtype: "float64" });
      const [values, factors] = [numbersOf(x), numbersOf(weight)];
      const expected = Array.from({ length: rows }, (_, row) => {
        const own = values.slice(row * size, (row + 1) * size);
        const root = Math.sqrt(own.reduce((sum, value) => sum + value * value, 0) / size + 1e-6);
        return own.map((value, at) => (value / root) * factors[at]);
      }).flat();
      const got = numbersOf(o.rmsNorm(x, shape.slice(1), weight, 1e-6));
      for (const [at, value] of expected.entries()) expect(got[at]).toBeCloseTo(value, 12);
    }
  });

  on("round with decimals", () => {
    manualSeed(3);
    for (const decimals of [-2, -1, 0, 1, 2, 3]) {
      const x = o.randn([50], { dtype: "float64" }).mul(100) as Tensor;
      const step = 10 ** -decimals;
      for (const [at, value] of numbersOf(o.round(x, { decimals })).entries()) {
        const given = numbersOf(x)[at];
        expect(Math.abs(value - given)).toBeLessThanOrEqual((step / 2) * (1 + 1e-9));
        expect(value / step).toBeCloseTo(Math.round(value / step), 9);
      }
    }
    expect(() => o.round(tensor([1n]), { decimals: 1 })).toThrow("expected floats");
  });

  on("integers in convolutions and pooling are computed exactly", () => {
    manualSeed(4);
    for (const dtype of ["int64", "int32", "int8"] as const) {
      const x = o.randint(-5, 6, [2, 4, 9], { dtype });
      const weight = o.randint(-2, 3, [4, 2, 3], { dtype });
      const wide = [x, weight].map((own) => own.to("float64")) as [Tensor, Tensor];
      const conv = o.conv1d(x, weight, { stride: [2], padding: 1, groups: 2 });
      expect(conv.dtype).toBe(dtype);
      expect(numbersOf(conv)).toEqual(numbersOf(o.conv1d(wide[0], wide[1], { stride: 2, padding: 1, groups: 2 })));
      expect(numbersOf(o.maxPool1d(x, 3, 2, 1))).toEqual(numbersOf(o.maxPool1d(wide[0], 3, 2, 1)));
      const means = numbersOf(o.avgPool1d(wide[0], 2)).map((mean) => Math.trunc(mean) + 0);
      expect(numbersOf(o.avgPool1d(x, [2], []))).toEqual(means);
    }
    expect(() => o.conv1d(o.ones([1, 1, 2], { dtype: "bool" }), o.ones([1, 1, 1], { dtype: "bool" }))).toThrow("dtype");
  });

  on("integer targets of losses of floats, and integers where they make floats", () => {
    manualSeed(5);
    const x = o.randn([40], { dtype: "float64" });
    const target = o.randint(0, 2, [40]).mul(2n).sub(1n) as Tensor<"int64">;
    const pairs = numbersOf(x).map((value, at): [number, number] => [value, numbersOf(target)[at]]);
    const formulas: readonly [(x: Tensor, t: Tensor) => Tensor, (x: number, t: number) => number][] = [
      [(a, t) => o.l1Loss(a, t, { reduction: "none" }), (a, t) => Math.abs(a - t)],
      [(a, t) => o.mseLoss(a, t, { reduction: "none" }), (a, t) => (a - t) ** 2],
      [(a, t) => o.softMarginLoss(a, t, { reduction: "none" }), (a, t) => Math.log1p(Math.exp(-t * a))],
      [(a, t) => o.poissonNllLoss(a, t, { reduction: "none" }), (a, t) => Math.exp(a) - t * a],
    ];
    for (const [loss, formula] of formulas)
      for (const [at, got] of numbersOf(loss(x, target)).entries()) expect(got).toBeCloseTo(formula(...pairs[at]), 12);
    const leaf = x.to("float32").detach();
    leaf.requiresGrad = true;
    o.smoothL1Loss(leaf, target).backward();
    expect(leaf.grad?.dtype).toBe("float32");
    expect(o.l1Loss(tensor([3n]), tensor([1n]), { reduction: "sum" }).item()).toBe(2n);
    expect(o.pairwiseDistance(tensor([3n, 0n]), tensor([0n, 4n]), { p: 2, eps: 0 }).item()).toBe(5);
    expect(o.trapezoid(tensor([1n, 2n])).item()).toBe(1.5);
    expect(() => o.mseLoss(tensor([3n]), tensor([1n]))).toThrow("expected x to be floats");
  });

  on("batches of attention broadcast", () => {
    manualSeed(6);
    const shapes: readonly (readonly [number[], number[], number[] | undefined])[] = [
      [[2, 3], [1, 3], undefined],
      [[2, 3], [3], [4, 6]],
      [[3], [2, 1], [2, 1, 4, 6]],
      [[2, 1, 2], [1, 3, 2], [6]],
      [[], [2], [4, 6]],
    ];
    for (const [ofQuery, ofKey, ofMask] of shapes) {
      const query = o.randn([...ofQuery, 4, 5], { dtype: "float64" });
      const [key, value] = [5, 7].map((size) => o.randn([...ofKey, 6, size], { dtype: "float64" })) as [Tensor, Tensor];
      const mask = ofMask && o.randn(ofMask, { dtype: "float64" });
      const scores = o.matmul(query, key.mT).div(Math.sqrt(5)) as Tensor;
      const expected = o.matmul(o.softmax((mask ? scores.add(mask) : scores) as Tensor, -1), value);
      const got = o.scaledDotProductAttention(query, key, value, mask);
      expect(got.shape).toEqual(expected.shape);
      for (const [at, own] of numbersOf(got).entries()) expect(own).toBeCloseTo(numbersOf(expected)[at], 12);
    }
  });

  on("instanceNorm with running statistics", () => {
    manualSeed(7);
    const x = o.randn([3, 2, 5], { dtype: "float64" });
    const [mean, variance] = [o.randn([2], { dtype: "float64" }), o.rand([2], { dtype: "float64" })];
    const [means, variances, values] = [numbersOf(mean), numbersOf(variance), numbersOf(x)];
    const ofRunning = numbersOf(o.instanceNorm(x, mean, variance, undefined, undefined, false, 0.1, 0.5));
    for (const [at, value] of values.entries()) {
      const channel = Math.floor(at / 5) % 2;
      expect(ofRunning[at]).toBeCloseTo((value - means[channel]) / Math.sqrt(variances[channel] + 0.5), 12);
    }
    o.instanceNorm(x, mean, variance, { momentum: 0.25 });
    for (const channel of [0, 1]) {
      const lines = [0, 1, 2].map((batch) => values.slice((batch * 2 + channel) * 5, (batch * 2 + channel + 1) * 5));
      const average = (own: readonly number[]) => own.reduce((sum, value) => sum + value, 0) / own.length;
      const spread = (own: readonly number[]) =>
        own.reduce((sum, value) => sum + (value - average(own)) ** 2, 0) / (own.length - 1);
      expect(numbersOf(mean)[channel]).toBeCloseTo(0.75 * means[channel] + 0.25 * average(lines.map(average)), 12);
      const running = 0.75 * variances[channel] + 0.25 * average(lines.map(spread));
      expect(numbersOf(variance)[channel]).toBeCloseTo(running, 12);
    }
    expect(() => o.instanceNorm(x, { useInputStats: false })).toThrow("expected runningMean and runningVar");
  });
});

const row = tensor([3, 1, 2]);

describe("values that PyTorch accepts in place of a number", () => {
  test("a tensor of rank 0 replaces a value, unless it requires a gradient", () => {
    const three = tensor(3);
    expect(o.full([2], tensor(3n)).toArray()).toEqual([3n, 3n]);
    expect(o.fullLike(row, three).toArray()).toEqual([3, 3, 3]);
    expect(o.zeros([2]).fill_(three).toArray()).toEqual([3, 3]);
    expect(o.indexFill(row, 0, tensor([1n]), three).toArray()).toEqual([3, 3, 2]);
    expect(() => o.full([2], tensor([3]))).toThrow(
      "expected value to be a number, a bigint or a boolean, got float32[1]",
    );
    expect(() => o.full([2], tensor(3, { requiresGrad: true }))).toThrow("detach it");
  });

  test("a tensor of rank 0 replaces any number: axes, sizes, factors", () => {
    const x = o.arange(6).reshape([2, 3]);
    expect(o.sum(x, tensor(1n) as never).toArray()).toEqual(o.sum(x, 1).toArray());
    expect(o.narrow(x, 1, tensor(1n) as never, 2).toArray()).toEqual(o.narrow(x, 1, 1, 2).toArray());
    expect(o.linspace(tensor(1) as never, 2, 3).toArray()).toEqual([1, 1.5, 2]);
    expect(o.leakyRelu(o.neg(row), tensor(0.5) as never).toArray()).toEqual([-1.5, -0.5, -1]);
    expect(() => o.sum(x, tensor([1n]) as never)).toThrow("expected dim to be an axis");
    expect(() => o.leakyRelu(row, tensor(0.5, { requiresGrad: true }) as never)).toThrow("detach it");
  });

  test("a tolerance may be given for each matrix", () => {
    const batch = o.stack([o.diag(tensor([4, 1])), o.diag(tensor([4, 1]))]);
    expect(o.linalg.matrixRank(batch, { atol: tensor([2, 0.5]) }).toArray()).toEqual([1n, 2n]);
    expect(o.linalg.matrixRank(batch, { rtol: tensor([0.1, 0.5]) }).toArray()).toEqual([2n, 1n]);
  });

  test("q, atol and rtol may be tensors", () => {
    expect(o.quantile(row, tensor(0.5)).toArray()).toBe(2);
    expect(o.quantile(row, tensor([0, 1])).toArray()).toEqual([1, 3]);
    expect(() => o.quantile(row, tensor([[0.5]]))).toThrow("one axis at most");
    const diagonal = tensor([[4, 0], [0, 1]]); // biome-ignore format: a matrix
    expect(o.linalg.matrixRank(diagonal, { atol: tensor(2) }).toArray()).toBe(1n);
    expect(o.linalg.matrixRank(diagonal, { rtol: tensor(0.1) }).toArray()).toBe(2n);
    expect(o.linalg.pinv(diagonal, { atol: tensor(2) }).toArray()).toEqual(o.diag(tensor([0.25, 0])).toArray());
  });

  test("null in sizes of adaptive pooling leaves an axis unchanged", () => {
    const picture = o.arange(8, { dtype: "float32" }).reshape([1, 2, 4]);
    for (const pool of [o.adaptiveAvgPool2d, o.adaptiveMaxPool2d] as const) {
      expect(pool(picture, [null, 2]).toArray()).toEqual(pool(picture, [2, 2]).toArray());
      expect(pool(picture, [1, null]).toArray()).toEqual(pool(picture, [1, 4]).toArray());
      expect(pool(picture, null).toArray()).toEqual(picture.toArray());
    }
    expect(o.adaptiveAvgPool2d(picture, [null]).toArray()).toEqual(picture.toArray());
    expect(() => o.adaptiveAvgPool2d(picture, [null, 1, 1])).toThrow(o.ArgumentError);
  });

  test("norms may have no weights, and instance norms running statistics", () => {
    const x = o.randn([4, 2, 3]);
    for (const norm of [
      new o.nn.LayerNorm([2, 3], 1e-5, false),
      new o.nn.RMSNorm([2, 3], { elementwiseAffine: false }),
    ]) {
      expect([norm.weight, norm.parameters().length]).toEqual([null, 0]);
      expect(norm.forward(x).shape).toEqual([4, 2, 3]);
    }
    const layer = new o.nn.InstanceNorm1d(2, { momentum: 1, trackRunningStats: true });
    layer.forward(x);
    expect(Object.keys(layer.stateDict())).toEqual(["running_mean", "running_var", "num_batches_tracked"]);
    expect(layer.running_mean).toBeCloseToTensor(o.mean(x, [0, 2]), { rtol: 1e-5, atol: 1e-6 });
    const before = layer.running_mean!.toArray();
    layer.eval().forward(x);
    expect(layer.running_mean!.toArray()).toEqual(before);
  });

  test("max and min accept two tensors, and meshgrid accepts single tensors with options", () => {
    expect(o.max(row, tensor([2, 2, 5])).toArray()).toEqual([3, 2, 5]);
    expect(row.min(tensor([2n, 2n, 5n])).toArray()).toEqual([2, 1, 2]);
    const [across, down] = (o.meshgrid as (...values: unknown[]) => Tensor[])(row, o.arange(2), { indexing: "xy" });
    expect([across.toArray(), down.shape]).toEqual([[[3, 1, 2], [3, 1, 2]], [2, 3]]); // biome-ignore format: rows
  });

  test("searchsorted accepts a side, another order, and int32 results", () => {
    const values = tensor([2]);
    const options = { side: "right", sorter: o.argsort(row), outInt32: true } as const;
    const found: Tensor<"int32"> = o.searchsorted(row, values, options);
    expect([found.dtype, found.toArray()]).toEqual(["int32", [2]]);
    expect(o.searchsorted(tensor([1, 2, 3]), values, { side: "left" }).toArray()).toEqual([1n]);
  });

  test("a size of 1 is broadcast in tensordot, and tensors of rank 0 are indexed", () => {
    const [a, b] = [tensor([[2], [3]]), tensor([[1, 10], [100, 1000]])]; // biome-ignore format: a matrix
    expect(o.tensordot(a, b, 1).toArray()).toEqual([[202, 2020], [303, 3030]]); // biome-ignore format: a matrix
    const five = tensor(5);
    expect(o.gather(five, 0, tensor([0n])).toArray()).toEqual([5]);
    expect(o.indexFill(five, 0, tensor([0n]), 7).toArray()).toBe(7);
    expect(o.indexCopy(five, 0, tensor([0n]), tensor(8)).toArray()).toBe(8);
  });

  test("vectors of split positions, integers in threshold, classes of -1 and other float dtypes are accepted", () => {
    expect(o.tensorSplit(row, tensor([1n, 2n])).map((part) => part.toArray())).toEqual([[3], [1], [2]]);
    expect(o.threshold(tensor([3n, 1n, 2n]), 1, 7).toArray()).toEqual([3n, 7n, 2n]);
    expect(o.oneHot(tensor([0n, 2n]), -1).shape).toEqual([2, 3]);
    const weighted: Tensor = o.cov(o.ones([2, 3], { dtype: "bfloat16" }), { aweights: tensor([1, 2, 3]) });
    expect(weighted.dtype).toBe("float32");
    expect(o.featureAlphaDropout(tensor([1n]), { training: false }).toArray()).toEqual([1n]);
  });

  test("8-bit integers wrap around before they become floats", () => {
    const [small, large] = [1, 3].map((value) => tensor([value], { dtype: "uint8" })) as [Tensor, Tensor];
    expect(o.pairwiseDistance(small, large, { eps: 0 }).item()).toBe(254);
    expect(o.trapezoid(tensor([200, 100], { dtype: "uint8" })).item()).toBe((300 - 256) / 2);
    expect(o.marginRankingLoss(large, small, small, { margin: 1 }).item()).toBe(255);
    expect(o.tripletMarginLoss(small, large, small, { margin: 0, eps: 0 }).item()).toBe(254);
  });

  test("averages accept their divisor by position", () => {
    expect(o.avgPool1d(tensor([[[1, 3]]]), 2, 2, 0, false, true, 4).toArray()).toEqual([[[1]]]);
  });
});
