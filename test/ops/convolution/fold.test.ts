/** Windows as columns and back, for drawn geometries, compared with loops over plain numbers. */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as library from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

const dtypes = ["float32", "float16", "bfloat16", "float64"] as const;
type Pair = readonly [number, number];

/** For each element of the columns, its pixel, or −1 for one of the padding. */
function pixelsOf(
  size: Pair,
  kernel: Pair,
  { dilation, padding, stride }: Geometry,
): { places: number[]; count: number } {
  const [high, wide] = [0, 1].map(
    (axis) => Math.floor((size[axis] + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis]) + 1,
  ) as [number, number];
  const places: number[] = [];
  for (let row = 0; row < kernel[0]; row++)
    for (let column = 0; column < kernel[1]; column++)
      for (let down = 0; down < high; down++)
        for (let across = 0; across < wide; across++) {
          const y = down * stride[0] + row * dilation[0] - padding[0];
          const x = across * stride[1] + column * dilation[1] - padding[1];
          places.push(y < 0 || y >= size[0] || x < 0 || x >= size[1] ? -1 : y * size[1] + x);
        }
  return { places, count: high * wide };
}

interface Geometry {
  readonly dilation: Pair;
  readonly padding: Pair;
  readonly stride: Pair;
}

const numbersOf = (x: Tensor): number[] => Array.from(library.toDType(x, "float32").dataSync(), Number);

test.each(tested)("fold and unfold of drawn geometries equal the definition, on %s", (backend) => {
  const random = new Random(hash("fold"));
  const pair = (least: number, most: number): Pair => [random.integer(least, most), random.integer(least, most)];
  for (let round = 0; round < 24; round++)
    withStrict(true, () =>
      withBackend(backend, () => {
        const [kernel, dilation, padding, stride] = [pair(1, 3), pair(1, 2), pair(0, 2), pair(1, 3)];
        const size = [0, 1].map((axis) => dilation[axis] * (kernel[axis] - 1) + random.integer(1, 9)) as [
          number,
          number,
        ];
        const geometry = { dilation, padding, stride };
        const { places, count } = pixelsOf(size, kernel, geometry);
        const [planes, pixels] = [random.integer(1, 4), size[0] * size[1]];
        const dtype = dtypes[random.integer(0, backend === "metal" ? 2 : 3)];
        const drawn = (length: number): number[] => Array.from({ length }, () => random.integer(-4, 4));
        const columns = drawn(planes * places.length);
        const summed = new Float64Array(planes * pixels);
        for (let plane = 0; plane < planes; plane++)
          for (const [at, place] of places.entries())
            if (place >= 0) summed[plane * pixels + place] += columns[plane * places.length + at];
        const image = drawn(planes * pixels);
        const taken = Array.from({ length: planes }, (_, plane) =>
          places.map((place) => (place < 0 ? 0 : image[plane * pixels + place])),
        ).flat();
        const made = (values: readonly number[], shape: readonly number[]): Tensor =>
          library.toDType(library.tensor(Float32Array.from(values), { shape: [...shape] }), dtype) as Tensor;
        const x = made(columns, [1, planes * kernel[0] * kernel[1], count]);
        expect(numbersOf(library.fold(x, size, kernel, geometry))).toEqual([...summed]);
        const picture = made(image, [1, planes, ...size]).detach();
        picture.requiresGrad = true;
        const windows = library.unfold(picture, kernel, geometry);
        expect(numbersOf(windows)).toEqual(taken);
        const [given] = grad([windows], [picture], { gradOutputs: [library.reshape(x, windows.shape)] });
        expect(numbersOf(given)).toEqual([...summed]);
      }),
    );
});
