/**
 * Average pooling, adaptive pooling and interpolation of drawn sizes, layouts and dtypes, with their gradients,
 * compared with sums in float64 over the windows as PyTorch's documentation defines them.
 */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as library from "../../../src/ops/index.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

/** The weighted elements of the input for each result of an axis. */
type Weights = readonly (readonly (readonly [place: number, weight: number])[])[];

/** Applies the maps of all axes to each plane; for a gradient, pass their transposes. */
function applied(maps: readonly Weights[], sizes: readonly number[], planes: number, x: readonly number[]) {
  const outputs = maps.map((map) => map.length);
  const terms = (at: number, axis: number): [number, number][] => {
    if (axis === maps.length) return [[0, 1]];
    const inner = elementCount(outputs.slice(axis + 1));
    const [place, rest] = [Math.floor(at / inner) % outputs[axis], elementCount(sizes.slice(axis + 1))];
    return maps[axis][place].flatMap(([from, weight]) =>
      terms(at, axis + 1).map(([other, product]): [number, number] => [from * rest + other, weight * product]),
    );
  };
  const [values, gradient] = [[] as number[], x.map(() => 0)];
  const [count, pixels] = [elementCount(outputs), elementCount(sizes)];
  for (let at = 0; at < planes * count; at++) {
    const base = Math.floor(at / count) * pixels;
    let sum = 0;
    for (const [place, weight] of terms(at % count, 0)) {
      sum += weight * x[base + place];
      gradient[base + place] += weight * (at + 1);
    }
    values.push(sum);
  }
  return { values, gradient };
}

const range = (start: number, end: number): number[] => Array.from({ length: end - start }, (_, at) => start + at);

function windowsOfPool(size: number, kernel: number, stride: number, padding: number, counts: boolean): Weights {
  const output = Math.floor((size + 2 * padding - kernel) / stride) + 1;
  return range(0, output).map((at) => {
    const start = at * stride - padding;
    const inside = range(Math.max(start, 0), Math.min(start + kernel, size));
    return inside.map((place) => [place, 1 / (counts ? kernel : inside.length)] as const);
  });
}

const adaptiveWindows = (size: number, count: number): Weights =>
  range(0, count).map((at) => {
    const inside = range(Math.floor((at * size) / count), Math.ceil(((at + 1) * size) / count));
    return inside.map((place) => [place, 1 / inside.length] as const);
  });

/** Linear interpolation between the centers of elements. */
const linearWindows = (size: number, output: number): Weights =>
  range(0, output).map((at) => {
    const from = Math.max(((at + 0.5) * size) / output - 0.5, 0);
    const place = Math.min(Math.floor(from), size - 1);
    return [[place, 1 - (from - place)] as const, [Math.min(place + 1, size - 1), from - place] as const];
  });

interface Call {
  readonly compute: (x: Tensor) => Tensor;
  readonly maps: readonly Weights[];
}

const pools = [library.avgPool1d, library.avgPool2d, library.avgPool3d] as const;
const adaptive = [library.adaptiveAvgPool1d, library.adaptiveAvgPool2d, library.adaptiveAvgPool3d] as const;
const modes = ["linear", "bilinear", "trilinear"] as const;

function drawnCall(random: Random, sizes: readonly number[]): Call {
  const rank = sizes.length;
  const kind = random.integer(0, 2);
  if (kind === 0) {
    const kernelSize = sizes.map((size) => random.integer(1, size));
    const stride = sizes.map(() => random.integer(1, 3));
    const padding = kernelSize.map((size) => random.integer(0, size >> 1));
    const countIncludePad = random.integer(0, 1) === 1;
    return {
      compute: (x) => pools[rank - 1](x, kernelSize, { stride, padding, countIncludePad }),
      maps: sizes.map((size, at) => windowsOfPool(size, kernelSize[at], stride[at], padding[at], countIncludePad)),
    };
  }
  const outputs = sizes.map((size) => random.integer(1, 2 * size));
  if (kind === 1)
    return {
      compute: (x) => adaptive[rank - 1](x, outputs),
      maps: sizes.map((size, at) => adaptiveWindows(size, outputs[at])),
    };
  return {
    compute: (x) => library.interpolate(x, { size: outputs, mode: modes[rank - 1] }),
    maps: sizes.map((size, at) => linearWindows(size, outputs[at])),
  };
}

describe.each(tested)("resampling on %s", (backend) => {
  const dtypes =
    backend === "metal" ? (["float32", "float16"] as const) : (["float32", "float64", "bfloat16"] as const);
  /** Relative to the largest number: a few roundings of the dtype. The operands are whole numbers, hence exact. */
  const allowed = { float64: 2 ** -48, float32: 2 ** -20, float16: 2 ** -9, bfloat16: 2 ** -6 } as const;

  test("drawn calls and their gradients equal the definition", () => {
    const random = new Random(hash("resampled"));
    for (let round = 0; round < 60; round++)
      withStrict(true, () =>
        withBackend(backend, () => {
          const rank = random.integer(1, 3);
          const widest = backend === "cpu" && round % 6 === 0 ? 40 : 7;
          const sizes = Array.from({ length: rank }, () =>
            random.integer(1, rank === 3 ? Math.min(widest, 9) : widest),
          );
          const lead = [random.integer(1, 2), random.integer(1, 3)];
          const dtype = dtypes[random.integer(0, dtypes.length - 1)];
          const values = Array.from({ length: elementCount([...lead, ...sizes]) }, () => random.integer(-9, 9));
          const dense = library.tensor(Float32Array.from(values), { shape: [...lead, ...sizes] });
          const isMoved = random.integer(0, 1) === 1;
          const laid = isMoved ? library.transpose(library.contiguous(library.transpose(dense, 1, -1)), 1, -1) : dense;
          const x = library.toDType(laid, dtype).detach();
          x.requiresGrad = true;
          const { compute, maps } = drawnCall(random, sizes);
          const output = compute(x);
          expect([output.dtype, output.shape]).toEqual([dtype, [...lead, ...maps.map((map) => map.length)]]);
          const incoming = library.toDType(library.arange(1, output.size + 1, { dtype: "float32" }), dtype);
          const [gradient] = grad([output], [x], { gradOutputs: [library.reshape(incoming, output.shape)] });
          const expected = applied(maps, sizes, elementCount(lead), values);
          for (const [got, wanted] of [
            [output, expected.values],
            [gradient, expected.gradient],
          ] as const) {
            const largest = Math.max(1, ...wanted.map(Math.abs));
            const numbers = library.toDType(got, backend === "metal" ? "float32" : "float64").dataSync();
            for (const [at, value] of wanted.entries())
              expect(Math.abs(Number(numbers[at]) - value)).toBeLessThanOrEqual(allowed[dtype] * largest);
          }
        }),
      );
  });

  test("adaptive max pooling of drawn sizes is right, with indices", () => {
    const random = new Random(hash("adaptive max"));
    for (let round = 0; round < 30; round++)
      withStrict(true, () =>
        withBackend(backend, () => {
          const [height, width] = [random.integer(1, 9), random.integer(1, 9)];
          const [down, across] = [random.integer(1, height), random.integer(1, width)];
          const values = Array.from({ length: 2 * height * width }, () => random.integer(-5, 5));
          const x = library.tensor(Float32Array.from(values), { shape: [1, 2, height, width] });
          const best = library.adaptiveMaxPool2d(x, [down, across], { returnIndices: true });
          const places = range(0, 2 * down * across).map((at) => {
            const rows = adaptiveWindows(height, down)[Math.floor(at / across) % down];
            const columns = adaptiveWindows(width, across)[at % across];
            const all = rows.flatMap(([row]) => columns.map(([column]) => row * width + column));
            const plane = Math.floor(at / (down * across)) * height * width;
            return all.reduce((first, place) => (values[plane + place] > values[plane + first] ? place : first));
          });
          expect(Array.from(best.indices.dataSync(), Number)).toEqual(places);
          const plane = (at: number): number => Math.floor(at / (down * across)) * height * width;
          expect(Array.from(best.values.dataSync())).toEqual(places.map((place, at) => values[plane(at) + place]));
        }),
      );
  });
});
