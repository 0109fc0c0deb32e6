/** Reductions of drawn rows of adjacent elements, longer than those that are transposed, compared with loops. */
import { expect, test } from "bun:test";
import * as library from "../../../src/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tidy } from "../../../src/tensor/tidy.ts";
import { tested } from "../run.ts";
import { Random } from "../samples.ts";

const dtypes = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"] as const;
const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);

test.each(tested)("sums, extrema and their indices equal the definition, on %s", (backend) => {
  const random = new Random(29);
  library.withBackend(backend, () => {
    for (let round = 0; round < (backend === "cpu" ? 120 : 6); round++)
      tidy(() => {
        const dtype = dtypes[random.integer(0, dtypes.length - 1)];
        if (backend === "metal" && dtype === "float64") return;
        const [rows, length] = [random.integer(1, 150), random.integer(90, round % 12 === 0 ? 9000 : 420)];
        const [skipped, beyond] = [random.integer(0, 3), random.integer(0, 3)];
        const width = skipped + length + beyond;
        // a few ones, whose sums are exact in 16-bit floats, and one larger number
        const values = Float32Array.from({ length: rows * width }, () => (random.integer(0, 99) === 0 ? 1 : 0));
        for (let row = 0; row < rows; row++) values[row * width + random.integer(0, width - 1)] = 3;
        const whole = library.toDType(library.tensor(values, { shape: [rows, width] }), dtype) as Tensor;
        const x = library.narrow(whole, 1, skipped, length);
        const lines = Array.from({ length: rows }, (_, row) =>
          values.subarray(row * width + skipped, row * width + skipped + length),
        );
        const largest = lines.map((line) => Math.max(...line));
        expect(numbersOf(library.sum(x, 1))).toEqual(lines.map((line) => line.reduce((sum, each) => sum + each, 0)));
        expect(numbersOf(library.amax(x, 1))).toEqual(largest);
        expect(numbersOf(library.max(x, 1).indices)).toEqual(lines.map((line, row) => line.indexOf(largest[row])));
      });
  });
});
