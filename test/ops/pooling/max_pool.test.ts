/** Largest elements of windows on every backend, compared with explicit windows; ties and NaN as in PyTorch. */
import { describe, expect, test } from "bun:test";
import { enableGrad, isGradEnabled } from "../../../src/autograd/modes.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { maxPool1d, maxPool2d, maxPool3d, square, sum, tensor } from "../../../src/ops/index.ts";
import type { PooledWithIndices } from "../../../src/ops/pooling/max_pool.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested, testTable } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import type { Block, Layout } from "../samples.ts";
import type { OperationRow } from "../table.ts";

interface Options {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly padding: readonly number[];
  readonly dilation: readonly number[];
  readonly ceilMode?: boolean;
}

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const pools = { 1: maxPool1d, 2: maxPool2d, 3: maxPool3d } as const;

const sizeOf = (size: number, axis: number, { kernel, stride, padding, dilation, ceilMode }: Options): number => {
  const room = (size + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis];
  if (!ceilMode) return Math.floor(room) + 1;
  const most = Math.ceil(room) + 1;
  return (most - 1) * stride[axis] >= size + padding[axis] ? most - 1 : most;
};

/** Every list with one number from each range; the last number changes fastest. */
const product = (sizes: readonly number[]): number[][] =>
  sizes.reduce<number[][]>(
    (all, size) => all.flatMap((own) => Array.from({ length: size }, (_, at) => [...own, at])),
    [[]],
  );

const rowMajor = (at: readonly number[], sizes: readonly number[]): number =>
  at.reduce((sum, own, axis) => sum * sizes[axis] + own, 0);

/** The largest element of each window and its index: the first of equal ones, the last NaN. */
function pooled(x: Pick<Block, "shape" | "values">, options: Options) {
  const rank = options.kernel.length;
  const input = x.shape.slice(-rank);
  const output = input.map((size, axis) => sizeOf(size, axis, options));
  const plane = input.reduce((all, size) => all * size, 1);
  const lead = x.shape.slice(0, -rank);
  const values: number[] = [];
  const indices: number[] = [];
  for (let first = 0; first < lead.reduce((all, size) => all * size, 1); first++)
    for (const window of product(output)) {
      let [best, index] = [Number.NEGATIVE_INFINITY, -1];
      for (const place of product(options.kernel)) {
        const at = window.map(
          (own, axis) => own * options.stride[axis] + place[axis] * options.dilation[axis] - options.padding[axis],
        );
        if (at.some((own, axis) => own < 0 || own >= input[axis])) continue;
        const value = x.values[first * plane + rowMajor(at, input)];
        if (value > best || Number.isNaN(value) || index < 0) [best, index] = [value, rowMajor(at, input)];
      }
      values.push(best);
      indices.push(index);
    }
  return { shape: [...lead, ...output], values, indices };
}

/** A test on each backend, which must not fall back. */
const onEachBackend = (name: string, body: () => void): void =>
  test.each(tested)(`${name} equals the definition, on %s`, (backend) =>
    withStrict(true, () => withBackend(backend, body)),
  );

const each = (size: number, rank: number): number[] => new Array<number>(rank).fill(size);
const layouts: readonly Layout[] = ["contiguous", "transposed", "strided", "offset", "reversed"];
const plain = (kernel: readonly number[], rest: Partial<Options> = {}): Options => ({
  kernel,
  stride: kernel,
  padding: each(0, kernel.length),
  dilation: each(1, kernel.length),
  ...rest,
});
const variants: readonly (readonly [shape: readonly number[], options: Options])[] = [
  [[2, 3, 8, 10], plain([2, 2])],
  [[2, 3, 9, 11], plain([3, 3], { stride: [2, 2], padding: [1, 1] })],
  [[1, 2, 6, 7], plain([3, 2], { stride: [1, 1], dilation: [2, 3] })],
  [[1, 2, 7, 8], plain([3, 3], { stride: [3, 4], padding: [1, 0], ceilMode: true })],
  [[3, 5, 6], plain([2, 3], { stride: [2, 1], padding: [1, 1] })],
  [[2, 3, 23], plain([5], { stride: [3], padding: [2], ceilMode: true })],
  [[2, 2, 5, 6, 7], plain([2, 3, 2], { stride: [2, 2, 1], padding: [1, 1, 0] })],
  [[1, 1, 3, 600], plain([2, 3], { stride: [1, 2], padding: [0, 1] })],
  [[1, 1, 2, 3], plain([5, 6], { stride: [1, 2], padding: [2, 3] })],
  [[0, 3, 4, 4], plain([2, 2])],
];

const callOf = (x: Tensor, { kernel, ...options }: Options): Tensor =>
  pools[kernel.length as 1 | 2 | 3](x, [...kernel], options);

const row: OperationRow<Options> = {
  name: "maxPool",
  compute: ([x], options) => callOf(x, options),
  dtypes: floats,
  samples: variants.map(([shape, options], at) => ({
    inputs: [{ shape, layout: layouts[at % layouts.length] }],
    options,
  })),
  oracle: ([x], options) => {
    const { shape, values } = pooled(x, options);
    return { shape, values };
  },
  accuracy: { ulps: 0 },
  gradient: true,
  // a sum over the windows that contain an element, in another order than the reference's
  gradientRoundings: (_inputs, { kernel, stride }) =>
    kernel.reduce((all, size, axis) => all * Math.ceil(size / stride[axis]), 1),
};

testTable("maximum pooling", [row]);

const infinity = Number.POSITIVE_INFINITY;
const special = [1, 3, NaN, 2, 2, 5, NaN, 1, 7, 7, -infinity, -infinity, 7, 0, -infinity, -infinity];

onEachBackend("ties, NaN and infinities", () => {
  const x = tensor(special, { shape: [1, 1, 4, 4], requiresGrad: true });
  const { values, indices } = maxPool2d(x, 2, { returnIndices: true }) as PooledWithIndices<"float32">;
  expect([...values.dataSync()]).toEqual([5, NaN, 7, -infinity]);
  expect([...indices.dataSync()]).toEqual([5n, 6n, 8n, 10n]);
  const [gradient] = grad([values], [x], { gradOutputs: [tensor([1, 2, 3, 4], { shape: [1, 1, 2, 2] })] });
  expect([...gradient.dataSync()]).toEqual([0, 0, 0, 0, 0, 1, 2, 0, 3, 0, 4, 0, 0, 0, 0, 0]);
});

onEachBackend("indices of every variant, with ties", () => {
  for (const [shape, options] of variants) {
    const values = Array.from({ length: elementCount(shape) }, (_, at) => Math.round(3 * Math.sin(at * 1.7)));
    const { kernel, ...rest } = options;
    const pool = pools[kernel.length as 1 | 2 | 3];
    const found = pool(tensor(values, { shape }), [...kernel], { ...rest, returnIndices: true });
    expect([...found.indices.dataSync()].map(Number)).toEqual(pooled({ shape, values }, options).indices);
  }
});

onEachBackend("a window of padding alone", () => {
  const x = tensor([5, 6], { shape: [1, 1, 2], requiresGrad: true });
  const pool = (own: Tensor) => maxPool1d(own, 4, { stride: 1, padding: 2, dilation: 2, returnIndices: true });
  expect(() => pool(x)).toThrow(/expected a window of at most 6 elements/);
  const { values, indices } = maxPool1d(x, 2, { padding: 1, dilation: 3, returnIndices: true });
  expect([...values.dataSync()]).toEqual([-infinity]);
  expect([...indices.dataSync()]).toEqual([-1n]);
  const [gradient] = grad([values], [x], { createGraph: true, gradOutputs: [tensor([3], { shape: [1, 1, 1] })] });
  expect([...gradient.dataSync()]).toEqual([0, 0]);
});

describe("pooling has gradients of gradients", () => {
  const small = variants.filter(([shape]) => [168, 84, 90, 69, 112, 6].includes(elementCount(shape)));

  test.each(small.map(([shape, options]) => [`${shape}`, shape, options] as const))(
    "%s has gradients of gradients",
    (_name, shape, options) => {
      for (const backend of ["cpu", "reference"] as const)
        withBackend(backend, () => {
          const wave = Float64Array.from({ length: elementCount(shape) }, (_own, at) => Math.sin(at * 1.3 + 1));
          const x = tensor(wave, { shape, requiresGrad: true });
          // the slopes of a square depend on x, and their gradient goes through the gradient of the pooling
          gradcheck(
            (own) => {
              const createGraph = isGradEnabled(); // finite differences need no graph
              const squares = enableGrad(() => sum(square(callOf(square(own) as Tensor, options)) as Tensor));
              return grad([squares], [own], { createGraph })[0];
            },
            [x],
          );
        });
    },
  );
});

const everything = (): unknown[] => {
  const wave = (shape: readonly number[], step: number): Tensor =>
    tensor(
      Float32Array.from({ length: shape.reduce((all, own) => all * own, 1) }, (_, at) => Math.sin(at * step)),
      { shape, requiresGrad: true },
    );
  const x = wave([3, 8, 33, 35], 0.37);
  const output = maxPool2d(x, 3, { stride: 2, padding: 1 });
  const results = [output, ...grad([output], [x], { gradOutputs: [wave(output.shape, 0.5)] })];
  return results.map((result) => Buffer.from(result.dataSync().buffer).toString("base64"));
};

describe("results of max pooling are bit-identical", () => testSameBits(everything));
