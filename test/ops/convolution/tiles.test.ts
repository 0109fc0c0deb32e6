/**
 * Convolutions on cpu: larger than a tile, deeper than a block, with few rows, or with strides that skip elements. The
 * result and both gradients are compared with the sums that define them, in float64.
 */
import { expect, test } from "bun:test";
import { conv3d, tensor, withBackend, withStrict } from "../../../src/index.ts";
import { type Case, checkCase } from "./cases.ts";

const cases: Readonly<Record<string, Case>> = {
  "a part of the channels and some lines": {
    ...({ x: [1, 240, 3, 30], weight: [30, 240, 3, 3] } as const),
    stride: 1,
    padding: 1,
    groups: 1,
  },
  "a part of a line": { x: [1, 3, 2, 1300], weight: [5, 3, 1, 7], stride: 1, padding: 3, groups: 1 },
  "strides over several stretches": { x: [2, 6, 61, 67], weight: [30, 3, 7, 7], stride: 2, padding: 3, groups: 2 },
  "a part of the outputs": { x: [1, 2, 5, 6], weight: [61, 2, 3, 3], stride: 1, padding: 1, groups: 1 },
  "one channel a group": { x: [2, 3, 67, 63], weight: [6, 1, 3, 3], stride: 1, padding: 1, groups: 3 },
  "one channel a group, with strides": { x: [1, 4, 19, 23], weight: [4, 1, 5, 3], stride: 3, padding: 2, groups: 4 },
  "one channel a group, small pictures": { x: [3, 5, 7, 9], weight: [10, 1, 3, 3], stride: 2, padding: 1, groups: 5 },
  "one channel a group, pictures of 7x7": {
    ...({ x: [3, 8, 7, 7], weight: [8, 1, 3, 3] } as const),
    stride: 1,
    padding: 1,
    groups: 8,
  },
  "few channels a group": { x: [3, 12, 9, 6], weight: [4, 6, 3, 3], stride: 1, padding: 1, groups: 2 },
  "several small pictures side by side": { x: [9, 20, 5, 7], weight: [17, 20, 3, 3], stride: 1, padding: 1, groups: 1 },
  "a stride beyond the kernel": { x: [2, 6, 9, 11], weight: [15, 6, 1, 2], stride: 3, padding: 0, groups: 1 },
  "a stride beyond the kernel along one axis": {
    ...({ x: [2, 6, 60, 83], weight: [15, 6, 3, 2] } as const),
    stride: 3,
    padding: 0,
    groups: 1,
  },
  "a kernel of one element": { x: [3, 9, 6, 13], weight: [21, 9, 1, 1], stride: 1, padding: 0, groups: 1 },
  "few outputs of many channels": { x: [2, 40, 11, 21], weight: [3, 40, 3, 3], stride: 2, padding: 1, groups: 1 },
  "few channels of many outputs": { x: [2, 3, 18, 17], weight: [33, 3, 5, 5], stride: 2, padding: 2, groups: 1 },
  "more places than a block": { x: [1, 2, 24, 30], weight: [5, 2, 21, 21], stride: 1, padding: 10, groups: 1 },
  "a column": { x: [2, 7, 45, 1], weight: [19, 7, 4, 1], stride: 1, padding: 0, groups: 1 },
  "lines of one piece, of several pictures": {
    ...({ x: [5, 30, 7, 7], weight: [32, 30, 3, 3] } as const),
    stride: 1,
    padding: 1,
    groups: 1,
  },
  "lines that end within a piece": { x: [1, 31, 5, 13], weight: [61, 31, 3, 3], stride: 1, padding: 1, groups: 1 },
  "lines of short pieces": { x: [3, 32, 3, 5], weight: [32, 32, 3, 3], stride: 1, padding: 1, groups: 1 },
  "pieces of four": { x: [1, 32, 6, 8], weight: [32, 32, 2, 3], stride: 1, padding: 1, groups: 1 },
  "pieces of six": { x: [2, 30, 4, 12], weight: [48, 30, 3, 1], stride: 1, padding: 0, groups: 1 },
  "bands of a picture": { x: [1, 6, 23, 56], weight: [32, 6, 3, 3], stride: 1, padding: 1, groups: 1 },
  "pieces with strides": { x: [2, 5, 15, 27], weight: [32, 5, 3, 3], stride: 2, padding: 1, groups: 1 },
  "pieces three elements apart": { x: [1, 4, 16, 40], weight: [32, 4, 4, 2], stride: 3, padding: 1, groups: 1 },
  "pieces of groups": { x: [1, 64, 4, 14], weight: [64, 32, 3, 3], stride: 1, padding: 1, groups: 2 },
  "pieces with dilation": { x: [1, 32, 9, 14], weight: [32, 32, 3, 3], stride: 1, padding: 2, groups: 1, dilation: 2 },
  "pieces under large kernels": { x: [1, 7, 9, 21], weight: [32, 7, 7, 7], stride: 1, padding: 3, groups: 1 },
  "one pixel": { x: [5, 32, 1, 1], weight: [64, 32, 3, 3], stride: 1, padding: 1, groups: 1 },
  dilation: { x: [1, 9, 17, 19], weight: [8, 9, 3, 3], stride: 2, padding: 4, groups: 1, dilation: 3 },
};

test.each(Object.entries(cases))("%s is correct in tiles", (_, own) => {
  for (const dtype of ["float32", "float64"] as const) checkCase("cpu", own, dtype);
});

test("convolutions in planes are correct", () => {
  const [depth, height, width] = [4, 5, 7];
  const wave = (count: number, step: number) => Float64Array.from({ length: count }, (_, at) => Math.sin(at * step));
  const [x, weight] = [wave(2 * 2 * depth * height * width, 0.7), wave(32 * 2 * 27, 0.3)];
  const found = withStrict(true, () =>
    withBackend("cpu", () =>
      conv3d(tensor(x, { shape: [2, 2, depth, height, width] }), tensor(weight, { shape: [32, 2, 3, 3, 3] }), {
        padding: 1,
      }).dataSync(),
    ),
  ) as Float64Array;
  let at = 0;
  for (let n = 0; n < 2; n++)
    for (let o = 0; o < 32; o++)
      for (let z = 0; z < depth; z++)
        for (let y = 0; y < height; y++)
          for (let column = 0; column < width; column++) {
            let sum = 0;
            for (let place = 0; place < 2 * 27; place++) {
              const [c, k] = [Math.floor(place / 27), place % 27];
              const from = [z + Math.floor(k / 9) - 1, y + (Math.floor(k / 3) % 3) - 1, column + (k % 3) - 1];
              if (from.some((own, axis) => own < 0 || own >= [depth, height, width][axis])) continue;
              const pixel = (((n * 2 + c) * depth + from[0]) * height + from[1]) * width + from[2];
              sum += x[pixel] * weight[o * 54 + place];
            }
            expect(Math.abs(found[at++] - sum)).toBeLessThan(54 * 2 ** -51);
          }
});
