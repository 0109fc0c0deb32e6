/** AWQ, with which GPTQ is compared. Tests its records, and that scaled columns represent the same weights. */
import { describe, expect, test } from "bun:test";
import { meanMagnitudes, scaleColumns } from "../../../bench/support/awq.ts";
import { dequantize, fromArray, Generator, nn, quantize, randn, type Tensor } from "../../../src/index.ts";

const [rows, width, outputs] = [60, 64, 12];
const normal = (shape: number[], seed: number): Tensor => randn(shape, { generator: new Generator(seed) });
const numbers = (x: Tensor): number[] => Array.from(x.detach().dataSync() as ArrayLike<number>, Number);

/** Rows of normal numbers, with every sixteenth column larger by this factor. */
const inputs = (outlier: number): number[][] =>
  (normal([rows, width], 3).toArray() as unknown as number[][]).map((row) =>
    row.map((value, column) => (column % 16 === 5 ? value * outlier : value)),
  );

/** Σ |x (W − Ŵ)ᵀ|², for x itself. */
function errorOf(x: number[][], exact: number[], own: number[]): number {
  let sum = 0;
  for (const row of x)
    for (let at = 0; at < outputs; at++)
      sum += row.reduce((all, value, k) => all + value * (exact[at * width + k] - own[at * width + k]), 0) ** 2;
  return sum;
}

test("meanMagnitudes records the inputs of all batches, and leaves the model unchanged", () => {
  const model = new nn.Sequential(new nn.Linear(width, outputs));
  const batches = [normal([4, 3, width], 1), normal([2, width], 2)];
  const all = batches.flatMap((batch) => batch.reshape([-1, width]).toArray() as unknown as number[][]);
  const exact = Array.from({ length: width }, (_, k) => all.reduce((sum, row) => sum + Math.abs(row[k]), 0) / 14);
  const got = meanMagnitudes(model, batches).get("0")!;
  for (const [k, value] of exact.entries()) expect(Math.abs(got[k] - value)).toBeLessThan(1e-12);
  expect(Object.hasOwn((model as unknown as { 0: nn.Linear })[0], "forward")).toBe(false);
});

describe.each([2, 3, 4] as const)("scaleColumns with %d bits", (bits) => {
  const format = { bits, groupSize: 32 } as const;
  const w = normal([outputs, width], 7);
  const round = (scaled: Tensor) => quantize(scaled, format);

  function found(outlier: number) {
    const x = inputs(outlier);
    const magnitudes = new Float64Array(width).map((_, k) => x.reduce((sum, row) => sum + Math.abs(row[k]), 0) / rows);
    const products = Float64Array.from({ length: width * width }, (_, at) =>
      x.reduce((sum, row) => sum + row[Math.floor(at / width)] * row[at % width], 0),
    );
    const own = scaleColumns(w, magnitudes, fromArray(products, [width, width]), round);
    const scales = numbers(own.scales);
    const undone = numbers(dequantize(own.weight)).map((value, at) => value / scales[at % width]);
    const [exact, nearest] = [numbers(w), numbers(dequantize(round(w)))];
    return { own, error: errorOf(x, exact, undone), nearest: errorOf(x, exact, nearest), magnitudes, scales };
  }

  test.each([1, 8, 40])(
    "scaleColumns has the stated error, at most that of nearest rounding, with outliers of %d",
    (outlier) => {
      const { own, error, nearest } = found(outlier);
      expect(Math.abs(own.error / error - 1)).toBeLessThan(1e-9);
      expect(error).toBeLessThanOrEqual(nearest * (1 + 1e-9));
    },
  );

  test("scaleColumns halves the error if some columns of x are much larger than others", () => {
    const { error, nearest, magnitudes, scales } = found(40);
    expect(error).toBeLessThan(0.5 * nearest);
    const alpha = Math.log(scales[5] / scales[6]) / Math.log(magnitudes[5] / magnitudes[6]);
    expect(Math.abs(alpha * 20 - Math.round(alpha * 20))).toBeLessThan(1e-4);
    for (let k = 0; k < width; k++)
      expect(Math.abs(scales[k] / scales[6] / (magnitudes[k] / magnitudes[6]) ** alpha - 1)).toBeLessThan(1e-5);
  });

  test("scaleColumns leaves columns unchanged if all inputs are alike", () => {
    const own = scaleColumns(
      w,
      new Float64Array(width).fill(3),
      fromArray(new Float64Array(width ** 2), [width, width]),
      round,
    );
    expect(numbers(own.scales).every((value) => Math.abs(value - 1) < 1e-6)).toBe(true);
  });
});
