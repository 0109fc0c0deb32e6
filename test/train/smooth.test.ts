import { expect, test } from "bun:test";
import { bytesAt, distances, withDecimals } from "../../src/train/dashboard/page/ticks.ts";
import { smooth } from "../../src/train/smooth.ts";

test("the average of 200 values begins at the first, and each new value halves the weight of those before", () => {
  const values = [4, 2, 6, ...Array.from({ length: 197 }, () => 1)];
  const [first, second, third] = smooth(values);
  expect(first).toBe(4);
  expect(second).toBeCloseTo((4 + 2 * 2) / 3, 12);
  expect(third).toBeCloseTo((4 + 2 * 2 + 4 * 6) / 7, 12);
  expect(smooth(values).at(-1)).toBeCloseTo(1, 12);
});

test("up to 100 values are not smoothed; missing and non-finite values are skipped", () => {
  expect(smooth([3, null, Number.NaN, 1, Number.POSITIVE_INFINITY])).toEqual([3, null, null, 1, null]);
  const values = Array.from({ length: 300 }, (_, index) => Math.sin(index));
  const gaps = values.flatMap((value) => [value, null]);
  expect(smooth(gaps).filter((value) => value !== null)).toEqual(smooth(values) as number[]);
  expect(smooth([])).toEqual([]);
});

test("ticks are 1, 2 and 5 times powers of ten, or bytes in their units", () => {
  const isRound = (value: number) => /^[125]e/.test(value.toExponential());
  for (const distance of [...distances.steps, ...distances.numbers])
    expect([distance, isRound(distance)]).toEqual([distance, true]);
  expect(distances.numbers.slice(0, 4)).toEqual([1e-9, 2e-9, 5e-9, 1e-8]);
  for (const distance of distances.steps) expect(Number.isInteger(distance)).toBe(true);
  expect(distances.bytes.slice(7, 13).map(bytesAt)).toEqual(["200 B", "500 B", "1 KB", "2 KB", "5 KB", "10 KB"]);
  expect(distances.bytes).toEqual([...distances.bytes].sort((a, b) => a - b));
});

test("labels have as many decimals as the distance of ticks needs", () => {
  expect([withDecimals(2, 1), withDecimals(2, 0.5), withDecimals(0.3, 0.1), withDecimals(0.02, 0.02)]).toEqual([
    "2",
    "2.0",
    "0.3",
    "0.02",
  ]);
  expect([withDecimals(1000, 500), withDecimals(0, 0.001), withDecimals(3e-5, 1e-5)]).toEqual([
    "1000",
    "0.000",
    "0.00003",
  ]);
});
