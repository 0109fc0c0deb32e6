/** Dropout of channels, and dropout that keeps mean and variance. */
import { describe, expect, test } from "bun:test";
import { manualSeed, nn, ones, randn, ShapeError, type Tensor } from "../../../src/index.ts";

const variants = [
  [1, nn.Dropout1d],
  [2, nn.Dropout2d],
  [3, nn.Dropout3d],
] as const;

describe.each(variants)("Dropout%id drops whole channels", (axes, Class) => {
  const behind = new Array<number>(axes).fill(3);

  test("Dropout drops whole channels, and scales the others", () => {
    manualSeed(2);
    const out = new Class(0.25).forward(ones([50, 40, ...behind])).reshape([2000, -1]);
    const channels = out.toArray() as number[][];
    for (const channel of channels) expect(new Set(channel).size).toBe(1);
    const values = channels.map(([first]) => first);
    expect([...new Set(values)].toSorted()).toEqual([0, Math.fround(4 / 3)]);
    const dropped = values.filter((value) => value === 0).length / values.length;
    expect(Math.abs(dropped - 0.25)).toBeLessThan(4 * Math.sqrt((0.25 * 0.75) / 2000));
  });

  test("Dropout accepts one item without a batch, and returns x itself in evaluation", () => {
    const x = ones([40, ...behind]);
    expect(new Class(0.5).eval().forward(x)).toBe(x);
    const channels = new Class(0.5).forward(x).reshape([40, -1]).toArray() as number[][];
    for (const channel of channels) expect(new Set(channel).size).toBe(1);
    expect(new Set(channels.map(([first]) => first)).size).toBe(2);
    expect(() => new Class().forward(ones([]))).toThrow(ShapeError);
  });
});

test("AlphaDropout keeps mean 0 and variance 1, by PyTorch's formula", () => {
  manualSeed(3);
  const x = randn([400, 500]);
  const out = new nn.AlphaDropout(0.3).forward(x);
  expect(Math.abs(Number(out.mean().item()))).toBeLessThan(0.02);
  expect(Math.abs(Number(out.std().item()) - 1)).toBeLessThan(0.02);
  // a = 1 / √((1 − p)(1 + p α'²)), b = −a α' p; an element is a x + b, or a α' + b
  const [p, lowest] = [0.3, -1.7580993408473766];
  const a = 1 / Math.sqrt((1 - p) * (1 + p * lowest ** 2));
  const b = -a * lowest * p;
  const [before, after] = [x, out].map((each: Tensor) => Array.from(each.dataSync() as Float32Array));
  const isDropped = after.map((value) => Math.abs(value - (a * lowest + b)) < 1e-5);
  for (const [at, dropped] of isDropped.entries())
    if (!dropped && Math.abs(after[at] - (a * before[at] + b)) > 1e-5)
      throw new Error(`element ${at} is neither dropped nor scaled`);
  expect(Math.abs(isDropped.filter(Boolean).length / x.size - p)).toBeLessThan(0.01);
  expect(new nn.AlphaDropout(0.3).eval().forward(x)).toBe(x);
});

test("Bilinear rejects sizes that differ", () => {
  const layer = new nn.Bilinear(2, 3, 4);
  expect(() => layer.forward(ones([5, 2]), ones([4, 3]))).toThrow(ShapeError);
  expect(() => layer.forward(ones([5, 3]), ones([5, 3]))).toThrow("expected x1 [..., 2] and x2 [..., 3]");
});
