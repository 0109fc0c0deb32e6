/** Largest and smallest elements by indices: NaN, elements that no index names, views, and axes beyond the index. */
import { describe, expect, test } from "bun:test";
import { scatterReduce, tensor, transpose, withBackend } from "../../../src/index.ts";

describe.each(["cpu", "reference"] as const)("on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withBackend(backend, body);

  test("NaN wins, and stays", () => {
    for (const reduce of ["amax", "amin"] as const)
      for (const dtype of ["float32", "float64", "bfloat16"] as const)
        on(() => {
          const x = tensor([1, Number.NaN, 3, 4], { dtype });
          const source = tensor([Number.NaN, 9, 7, -7, 5], { dtype });
          const found = scatterReduce(x, 0, tensor([0n, 0n, 1n, 2n, 2n]), source, reduce);
          expect(Array.from(found.dataSync() as Float32Array)).toEqual([
            ...[Number.NaN, Number.NaN],
            ...(reduce === "amax" ? [5, 4] : [-7, 4]),
          ]);
        });
  });

  test("without x's own elements, those that no index names stay", () => {
    on(() => {
      const index = transpose(
        tensor(
          [
            [0, 2, 0],
            [2, 2, 2],
          ],
          { dtype: "int32" },
        ),
        0,
        1,
      );
      const source = tensor([
        [5n, -8n],
        [6n, -9n],
        [4n, -7n],
      ]);
      const x = tensor([
        [90n, 91n, 92n],
        [80n, 81n, 82n],
        [70n, 71n, 72n],
      ]);
      const of = (reduce: "amax" | "amin", includeSelf: boolean) =>
        Array.from(scatterReduce(x, 0, index, source, reduce, { includeSelf }).dataSync() as BigInt64Array, Number);
      expect(of("amax", false)).toEqual([5, 91, 92, 80, 81, 82, 6, -7, 72]);
      expect(of("amin", false)).toEqual([4, 91, 92, 80, 81, 82, 6, -9, 72]);
      expect(of("amin", true)).toEqual([4, 91, 92, 80, 81, 82, 6, -9, 72]);
      expect(of("amax", true)).toEqual([90, 91, 92, 80, 81, 82, 70, 71, 72]);
    });
  });
});
