/** Running sums and products along the middle axis of tensors with a few columns, compared with float64. */
import { expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { cumprod, cumsum, type Tensor, tensor } from "../../../src/index.ts";
import { mulberry32 } from "../../linalg/random.ts";

test("cumsum and cumprod of one to eight columns are accurate", () => {
  withBackend("cpu", () => {
    const random = mulberry32(11);
    for (let columns = 1; columns <= 8; columns++)
      for (const isSum of [true, false]) {
        const next = (a: number, b: number): number => (isSum ? a + b : a * b);
        const [rows, length] = [1 + Math.floor(random() * 5), 1 + Math.floor(random() * 20)];
        const numbers = Float32Array.from({ length: rows * length * columns }, () => random() + 0.5);
        const expected = Float64Array.from(numbers);
        for (let at = 0; at < numbers.length; at++)
          if (Math.floor(at / columns) % length > 0) expected[at] = next(expected[at - columns], expected[at]);
        const x = tensor(numbers).reshape([rows, length, columns]) as Tensor;
        const found = (isSum ? cumsum(x, 1) : cumprod(x, 1)).dataSync() as Float32Array;
        expect([...found]).toEqual([...Float32Array.from(expected)]);
      }
  });
});
