/** What the kernel of singular value decompositions moves, and in how many dispatches. */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { svd, svdvals } from "../../src/linalg/svd/svd.ts";
import { stack } from "../../src/ops/join/cat.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { families } from "./matrices.ts";
import { on, places, toTensor } from "./run.ts";

const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};

/** The bytes of each dispatch of the body, in which the checker must find nothing. */
function bytesOf(body: () => unknown): number[] {
  const context = metalContext();
  context.wait();
  watch(true);
  context.report({ clear: true });
  on("metal", true, body);
  context.wait();
  const { dispatches, findings } = context.report({ clear: true });
  watch(false);
  expect(findings).toEqual([]);
  return dispatches.map(({ counters }) => counters.device_bytes_read + counters.device_bytes_written);
}

const batchOf = (count: number, rows: number, columns: number): Tensor =>
  on("metal", true, () =>
    stack(Array.from({ length: count }, (_, at) => toTensor(families.random!(rows, columns, at + 1), "float32"))),
  );

describe.skipIf(!places.some(({ backend }) => backend === "metal") || !metalContext().isSoftware)(
  "svd on metal",
  () => {
    afterAll(() => watch(false));

    test.each([
      [8, 8],
      [32, 32],
      [63, 63],
      [64, 20],
      [20, 64],
    ])("%d x %d: one dispatch, each matrix read once, each result written once", (rows, columns) => {
      const small = Math.min(rows, columns);
      for (const count of [1, 3]) {
        const a = batchOf(count, rows, columns);
        const values = rows * columns + small + 1;
        expect(bytesOf(() => svdvals(a))).toEqual([4 * count * values]);
        expect(bytesOf(() => svd(a, false))).toEqual([4 * count * (values + small * (rows + columns))]);
      }
    });

    test("64 x 64, whose vectors leave no room for norms", () => {
      const a = batchOf(1, 64, 64);
      const [bytes, ...others] = bytesOf(() => svd(a, false));
      expect(others).toEqual([]);
      expect(bytes! / (4 * (3 * 64 * 64 + 64 + 1))).toBeLessThan(1.8);
    });
  },
);
