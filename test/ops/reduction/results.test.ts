/** Results of reductions, which are converted to their dtype in blocks of 64: each equals that of its column alone. */
import { expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { all, max, mean, narrow, sum, tensor, toDType } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { Random } from "../samples.ts";

const [rows, columns] = [7, 197];
const random = new Random(77);
const numbers = Float64Array.from({ length: rows * columns }, () => Math.floor(random.next() * 120));

const reductions: Readonly<Record<string, (x: Tensor) => readonly Tensor[]>> = {
  sum: (x) => [sum(x, 0) as Tensor],
  mean: (x) => [mean(toDType(x, x.dtype === "float64" ? "float64" : "bfloat16"), 0) as Tensor],
  all: (x) => [all(x, 0)],
  "max and its index": (x) => Object.values(max(x, 0)) as Tensor[],
};

test.each(["float64", "float32", "float16", "int64", "int32", "uint8"] as const satisfies readonly DType[])(
  "results of %s do not depend on their number",
  (dtype) => {
    withBackend("cpu", () => {
      const x = toDType(tensor(numbers).reshape([rows, columns]), dtype) as Tensor;
      for (const [name, reduce] of Object.entries(reductions)) {
        const together = reduce(x).map((result) => result.toArray() as unknown[]);
        const alone = Array.from({ length: columns }, (_, at) =>
          reduce(narrow(x, 1, at, 1)).map((result) => (result.toArray() as unknown[])[0]),
        );
        together.forEach((results, at) => {
          expect({ name, results }).toEqual({ name, results: alone.map((one) => one[at]) });
        });
      }
    });
  },
);
