/**
 * Results so large that the cpu backend streams them past the caches: whole cache lines, the remainder, and addresses
 * that begin inside a line.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { toDType } from "../../../src/ops/copy/cast.ts";
import { copy_ } from "../../../src/ops/copy/inplace.ts";
import { zeros } from "../../../src/ops/creation/full.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { neg, sub } from "../../../src/ops/elementwise/arithmetic.ts";
import { lt } from "../../../src/ops/elementwise/comparison.ts";
import { reshape } from "../../../src/ops/view/reshape.ts";
import { slice } from "../../../src/ops/view/slice.ts";

const rows = 2053;
const columns = 2055; // 17 MB of float32, with a partial last cache line
const size = rows * columns;
const values = Float32Array.from({ length: size }, (_, index) => (index * 7919) % 1021);

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

/** The index of the first element that differs; −1 if none does. */
const firstWrong = (got: ArrayLike<number | bigint>, want: (index: number) => number): number => {
  for (let index = 0; index < got.length; index++) if (Number(got[index]) !== want(index)) return index;
  return -1;
};

describe.each(isas)("large operands are correct with %s", (isa) => {
  const on = (body: () => void) => () => {
    configure(native, "isa", isa);
    withStrict(true, () => withBackend("cpu", body));
  };

  test(
    "dense and broadcast operands are correct",
    on(() => {
      const x = tensor(values);
      const row = tensor(values.subarray(0, columns));
      const difference = sub(reshape(x, [rows, columns]), row).dataSync();
      expect(firstWrong(neg(x).dataSync(), (index) => -values[index])).toBe(-1);
      expect(firstWrong(difference, (index) => values[index] - values[index % columns])).toBe(-1);
      expect(firstWrong(lt(x, 500).dataSync(), (index) => Number(values[index] < 500))).toBe(-1);
      expect(firstWrong(toDType(x, "int64").dataSync(), (index) => values[index])).toBe(-1);
    }),
  );

  test(
    "a view may begin inside a cache line, and its surroundings stay unchanged",
    on(() => {
      const whole = zeros([size]);
      copy_(slice(whole, { start: 3, end: size - 2 }), slice(tensor(values), { end: size - 5 }));
      const isInside = (index: number) => index >= 3 && index < size - 2;
      const want = (index: number) => (isInside(index) ? values[index - 3] : 0);
      expect(firstWrong(whole.dataSync(), want)).toBe(-1);
    }),
  );
});
