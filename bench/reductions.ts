// Reductions of 16 million float32 numbers on the cpu backend beside a plain memory copy of as many, in one run. The aim: bytes read per
// second are at least 0.7 of the bytes that the copy reads and writes.
import { withBackend } from "../src/backend/policy.ts";
import { tensor } from "../src/ops/creation/tensor.ts";
import { amax, argmax, logsumexp, mean, norm, sum, variance } from "../src/ops/index.ts";
import { reshape } from "../src/ops/view/reshape.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, table } from "./measure.ts";

const elements = 1 << 24;
const side = 1 << 12;
const aim = 0.7;

const source = Float32Array.from({ length: elements }, (_, index) => Math.sin(index));
const x = withBackend("cpu", () => tensor(source));
const square = reshape(x, [side, side]);
const copied = new Float32Array(elements);

const on = (compute: () => Tensor) => () => withBackend("cpu", () => compute().dispose());
const measured = interleaved({
  copy: () => copied.set(source),
  "sum of all": on(() => sum(x)),
  "sum of rows": on(() => sum(square, { dim: 1 })),
  "sum of columns": on(() => sum(square, { dim: 0 })),
  "amax of all": on(() => amax(x)),
  "amax of rows": on(() => amax(square, { dim: 1 })),
  "amax of columns": on(() => amax(square, { dim: 0 })),
  "mean of rows": on(() => mean(square, { dim: 1 })),
  "norm of all": on(() => norm(x)),
  "argmax of rows": on(() => argmax(square, { dim: 1 })),
  "argmax of columns": on(() => argmax(square, { dim: 0 })),
  "variance of rows": on(() => variance(square, { dim: 1 })),
  "variance of columns": on(() => variance(square, { dim: 0 })),
  "logsumexp of rows": on(() => logsumexp(square, { dim: 1 })),
});

const bytes = elements * Float32Array.BYTES_PER_ELEMENT;
const [copy] = measured;
const copyRate = (2 * bytes) / (copy?.median ?? Number.NaN);
const rows = measured.map(({ name, median }) => {
  const rate = (name === "copy" ? 2 * bytes : bytes) / median;
  return [name, median.toFixed(2), (rate / 1e6).toFixed(1), (rate / copyRate).toFixed(2)];
});
console.log(`Reductions of ${elements} float32 numbers (medians of 9, in turn); aim ${aim} of the copy's bandwidth`);
console.log(table(["", "ms", "GB/s", "of copy"], rows));
