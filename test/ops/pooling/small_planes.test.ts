/**
 * Pooling, unpooling, grids and windows of drawn sizes around those of a block of planes: compared with definitions,
 * and with the same bits for any number of threads.
 */
import { expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import * as o from "../../../src/index.ts";
import { type DType, type Tensor, tensor, toDType, withBackend } from "../../../src/index.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import { draws, expectNear, floats, numbers, onCpu, range, rowsOf, wideFloats } from "../drawn_calls.ts";

const { random, drawn, pick, sized } = draws(3701);
const pools = [o.maxPool1d, o.maxPool2d, o.maxPool3d] as const;
const averages = [o.avgPool1d, o.avgPool2d, o.avgPool3d] as const;
const adaptive = [o.adaptiveMaxPool1d, o.adaptiveMaxPool2d, o.adaptiveMaxPool3d] as const;

/** Sizes of planes with short lines, or with lines that are as long as a vector. */
const drawnSizes = (rank: number): number[] =>
  range(rank).map(() => random.integer(1, pick([4, 9, rank > 2 ? 9 : 40])));

/** Returns the positions of each window's elements along an axis. */
type Places = readonly (readonly number[])[];
const regular = (size: number, { kernel, stride, padding, dilation }: Record<string, number>): Places =>
  range(Math.floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1).map((window) =>
    range(kernel)
      .map((at) => window * stride - padding + at * dilation)
      .filter((at) => at >= 0 && at < size),
  );
const uneven = (size: number, count: number): Places =>
  range(count).map((window) => {
    const start = Math.floor((window * size) / count);
    return range(Math.ceil(((window + 1) * size) / count) - start).map((at) => start + at);
  });

/** Returns the positions in a plane of the elements of all windows, row-major. */
const windowsIn = (sizes: readonly number[], places: readonly Places[]): number[][] =>
  places.reduce<number[][]>(
    (outer, axis, at) =>
      outer.flatMap((before) =>
        axis.map((own) => before.flatMap((place) => own.map((next) => place * sizes[at] + next))),
      ),
    [[0]],
  );

/** The position of the largest element: of equal elements the first one, of NaNs the last one. */
const largest = (values: readonly number[], window: readonly number[]): number =>
  window.reduce((best, at) => (best < 0 || values[at] > values[best] || Number.isNaN(values[at]) ? at : best), -1);

onCpu("max pooling of planes with their indices", () => {
  const [rank, dtype] = [random.integer(1, 3), pick(floats)];
  const sizes = drawnSizes(rank);
  const lead = [random.integer(1, 3), random.integer(1, 14)];
  const special = [Number.NaN, Number.NEGATIVE_INFINITY, 2, 2, 2];
  const x = drawn([...lead, ...sizes], dtype, () =>
    random.next() < 0.3 ? pick(special) : Math.round(random.next() * 8),
  );
  const [isUneven, isIndexed] = [random.next() < 0.4, random.next() < 0.7];
  const counts = sizes.map((size) => random.integer(1, size));
  const options = sizes.map((size) => {
    const kernel = random.integer(1, Math.min(size, 5));
    const dilation = kernel > 1 && 2 * kernel - 1 <= size ? random.integer(1, 2) : 1;
    return { kernel, stride: random.integer(1, 3), padding: random.integer(0, kernel >> 1), dilation };
  });
  const of = (name: "kernel" | "stride" | "padding" | "dilation") => options.map((each) => each[name]);
  const [stride, padding, dilation] = [of("stride"), of("padding"), of("dilation")];
  const call = () =>
    isUneven
      ? adaptive[rank - 1](x, counts, { returnIndices: true })
      : pools[rank - 1](x, of("kernel"), { stride, padding, dilation, returnIndices: true });
  const plain = isUneven
    ? adaptive[rank - 1](x, counts)
    : pools[rank - 1](x, of("kernel"), { stride, padding, dilation });
  const windows = windowsIn(
    sizes,
    sizes.map((size, at) => (isUneven ? uneven(size, counts[at]) : regular(size, options[at]))),
  );
  const planes = rowsOf(numbers(x), elementCount(sizes));
  const places = planes.flatMap((values) => windows.map((window) => largest(values, window)));
  const values = places.map((place, at) => planes[Math.floor(at / windows.length)][place] ?? Number.NEGATIVE_INFINITY);
  const what = `${isUneven ? "adaptive " : ""}${x.shape} ${dtype}`;
  expect([what, ...numbers(plain)]).toEqual([what, ...values]);
  if (!isIndexed) return;
  expect([what, ...numbers(call().values)]).toEqual([what, ...values]);
  expect([what, ...numbers(call().indices)]).toEqual([what, ...places]);
});

onCpu("means and power averages of planes", () => {
  const [rank, dtype] = [random.integer(1, 3), pick(floats)];
  const sizes = drawnSizes(rank);
  const x = drawn([random.integer(1, 3), random.integer(1, 14), ...sizes], dtype);
  const options = sizes.map((size) => {
    const kernel = random.integer(1, Math.min(size, 4));
    return { kernel, stride: random.integer(1, 3), padding: 0, dilation: 1 };
  });
  const [kernel, stride] = [options.map((each) => each.kernel), options.map((each) => each.stride)];
  const windows = windowsIn(
    sizes,
    sizes.map((size, at) => regular(size, options[at])),
  );
  const sums = (power: number) =>
    rowsOf(numbers(x), elementCount(sizes)).flatMap((plane) =>
      windows.map((window) => window.reduce((sum, at) => sum + plane[at] ** power, 0)),
    );
  const count = elementCount(kernel);
  const means = sums(1).map((sum) => sum / count);
  expectNear(averages[rank - 1](x, kernel, { stride }), means, dtype, `means of ${x.shape}`);
  const lengths = sums(2).map(Math.sqrt);
  const lp = [o.lpPool1d, o.lpPool2d, o.lpPool3d][rank - 1];
  expectNear(lp(x, 2, kernel, { stride }), lengths, dtype, `lengths of ${x.shape}`);
});

onCpu("max unpooling puts elements at their indices", () => {
  const dtype = pick(floats);
  const [batch, channels, height, width] = [sized(3), sized(20), sized(9), sized(20)];
  const x = drawn([batch, channels, height, width], dtype);
  const pixels = 4 * height * width;
  const indices = range(x.size).map(() => random.integer(0, pixels - 1));
  const index = toDType(tensor(Float64Array.from(indices), { shape: x.shape }), pick(["int64", "int32"] as const));
  const expected = range(batch * channels).flatMap(() => new Array<number>(pixels).fill(0));
  for (const [at, value] of numbers(x).entries())
    expected[Math.floor(at / (height * width)) * pixels + indices[at]] = value;
  const found = o.maxUnpool2d(x, index as Tensor<"int64">, 2);
  expect(found.shape).toEqual([batch, channels, 2 * height, 2 * width]);
  expect(numbers(found)).toEqual(expected);
});

test("max unpooling names an index out of range", () =>
  withBackend("cpu", () => {
    const call = () =>
      o.maxUnpool1d(
        o.ones([2, 3]),
        tensor([
          [0n, 1n, 2n],
          [3n, 6n, 5n],
        ]),
        2,
      );
    expect(call).toThrow("indices of 0 to 5, got 6 at [1, 1]");
  }));

onCpu("unfold and pixelUnshuffle copy windows", () => {
  const dtype = pick([...floats, "int64", "uint8", "bool"] as const) as DType;
  const [batch, channels, kernel] = [sized(3), sized(6), [sized(4), sized(4)]];
  const [stride, dilation] = [
    [sized(4), sized(4)],
    [sized(3), sized(3)],
  ];
  const padding = [random.integer(0, 3), random.integer(0, 3)];
  const sizes = [0, 1].map((axis) => dilation[axis] * (kernel[axis] - 1) + sized(30));
  const values = () => random.integer(0, dtype === "bool" ? 1 : 9);
  const x = drawn([batch, channels, ...sizes], dtype, values);
  const [rows, columns] = [0, 1].map((axis) => {
    const span = dilation[axis] * (kernel[axis] - 1) + 1;
    return range(Math.floor((sizes[axis] + 2 * padding[axis] - span) / stride[axis]) + 1);
  });
  const planes = rowsOf(numbers(x), sizes[0] * sizes[1]);
  const isInside = (at: number, axis: number): boolean => at >= 0 && at < sizes[axis];
  const expected = planes.flatMap((plane) =>
    range(kernel[0]).flatMap((k) =>
      range(kernel[1]).flatMap((l) =>
        rows.flatMap((i) =>
          columns.map((j) => {
            const row = i * stride[0] + k * dilation[0] - padding[0];
            const column = j * stride[1] + l * dilation[1] - padding[1];
            return isInside(row, 0) && isInside(column, 1) ? plane[row * sizes[1] + column] : 0;
          }),
        ),
      ),
    ),
  );
  const found = o.unfold(x, kernel, { stride, padding, dilation });
  expect(found.shape).toEqual([batch, channels * kernel[0] * kernel[1], rows.length * columns.length]);
  expect(numbers(found)).toEqual(expected);
  const r = sized(3);
  const picture = drawn([channels, r * sized(9), r * sized(20)], dtype, values);
  const blocks = o.pixelUnshuffle(picture, r);
  expect(numbers(blocks)).toEqual(numbers(o.unfold(picture, r, { stride: r })));
  expect(numbers(o.pixelShuffle(blocks, r))).toEqual(numbers(picture));
});

onCpu("affineGrid equals its composition", () => {
  const dtype = pick(wideFloats);
  const rank = random.integer(2, 3);
  const batch = sized(5);
  const theta = drawn([batch, rank, rank + 1], dtype);
  const size = [batch, 1, ...range(rank).map(() => sized(rank === 2 ? 40 : 12))];
  const alignCorners = random.next() < 0.5;
  const call = () => o.affineGrid(theta, size, { alignCorners });
  const expected = withBackend("reference", () => numbers(call()));
  expectNear(call(), expected, dtype, `affineGrid ${size} ${alignCorners}`);
});

test("results have the same bits for any number of threads", () =>
  withBackend("cpu", () => {
    const { native } = cpuLibrary();
    const compute = (planes: number): Tensor[] => {
      const { drawn: make } = draws(3702);
      const x = make([planes, 3, 9, 14], "float32");
      const volumes = o.reshape(x, [planes, 1, 3, 9, 14]);
      const best = o.maxPool2d(x, 2, { returnIndices: true });
      const [image, grid] = [make([planes, 20, 6, 7], "float32"), make([planes, 8, 9, 2], "float32")];
      for (const input of [image, grid]) input.requiresGrad = true;
      const sampled = o.gridSample(image, grid);
      return [
        sampled.detach(),
        ...o.grad([o.sum(o.square(sampled))], [image, grid]),
        o.maxPool2d(x, [2, 3], { stride: 1 }),
        o.maxPool3d(volumes, 2),
        o.avgPool2d(x, 3, { stride: 2, padding: 1 }),
        o.avgPool3d(volumes, 2),
        o.adaptiveMaxPool2d(x, [2, 3]),
        o.adaptiveAvgPool2d(x, [4, 5]),
        o.interpolate(x, { scaleFactor: 2, mode: "bilinear" }),
        o.maxUnpool2d(best.values, best.indices, 2),
        o.unfold(x, 3, { padding: 1, stride: 2 }),
        o.gridSample(x, make([planes, 8, 9, 2], "float32")),
        o.affineGrid(make([planes, 2, 3], "float32"), [planes, 1, 20, 30]),
        o.groupNorm(x, 3),
      ];
    };
    const bits = (x: Tensor) => [...new Uint32Array((x.contiguous().dataSync() as Float32Array).slice().buffer)];
    for (const planes of [random.integer(20, 40), random.integer(100, 150)]) {
      const first = compute(planes).map(bits);
      for (const threads of [1, 2, 3]) {
        configure(native, "threads", String(threads));
        expect(compute(planes).map(bits)).toEqual(first);
      }
      configure(native, "threads", "auto");
    }
  }));
