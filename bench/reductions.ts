// Compares reductions, scans and softmax of 16 million float32 numbers on the cpu backend with a plain copy of the same
// size, in one run. Bandwidth is the bytes that must move per second: for the copy, the bytes read and written; for a
// reduction, its elements once, since its results are few; for scans and softmax, elements and results once each. The
// aim is at least 0.7 of the copy's bandwidth.
import { withBackend } from "../src/backend/policy.ts";
import { tensor } from "../src/ops/creation/tensor.ts";
import { amax, argmax, cumsum, logsumexp, max, mean, norm, softmax, sum, variance } from "../src/ops/index.ts";
import { reshape } from "../src/ops/view/reshape.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, table } from "./support/measure.ts";

const elements = 1 << 24;
const side = 1 << 12;
const aim = 0.7;
const bytes = elements * Float32Array.BYTES_PER_ELEMENT;

type Compute = (x: Tensor, options: { dim?: number }) => Tensor;
interface Case {
  readonly compute: Compute;
  /** The bytes that must move. */
  readonly moved: number;
}

const reductions: Readonly<Record<string, Compute>> = {
  sum: (x, options) => sum(x, options),
  mean,
  amax,
  max: (x, { dim }) => valuesOf(max(x, { dim })),
  argmax,
  variance,
  norm,
  logsumexp,
};
const wholes: Readonly<Record<string, Compute>> = {
  softmax,
  cumsum: (x, { dim = 0 }) => cumsum(x, { dim }),
};
const cases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(Object.entries(reductions).map(([name, compute]) => [name, { compute, moved: bytes }])),
  ...Object.fromEntries(Object.entries(wholes).map(([name, compute]) => [name, { compute, moved: 2 * bytes }])),
};

function valuesOf(result: ReturnType<typeof max>): Tensor {
  if (!("values" in result)) return result;
  result.indices.dispose();
  return result.values;
}

const source = Float32Array.from({ length: elements }, (_, index) => Math.sin(index));
const line = withBackend("cpu", () => tensor(source));
const square = reshape(line, [side, side]);
const copied = new Float32Array(elements);

const axes: readonly (readonly [string, Tensor, { dim?: number }])[] = [
  ["all", line, {}],
  ["last", square, { dim: 1 }],
  ["first", square, { dim: 0 }],
];
const calls = Object.entries(cases).flatMap(([name, { compute, moved }]) =>
  axes.map(([axis, x, options]) => ({
    name: `${name}, ${axis}`,
    moved,
    call: () =>
      withBackend("cpu", () => compute(x, name === "softmax" && axis === "all" ? { dim: 0 } : options).dispose()),
  })),
);
const measured = interleaved({
  copy: () => copied.set(source),
  ...Object.fromEntries(calls.map(({ name, call }) => [name, call])),
});

const movedBy = new Map([["copy", 2 * bytes], ...calls.map(({ name, moved }): [string, number] => [name, moved])]);
const rateOf = ({ name, median }: (typeof measured)[number]): number => movedBy.get(name)! / median;
const copyRate = rateOf(measured[0]);
const rows = measured.map((each) => {
  const share = rateOf(each) / copyRate;
  return [
    each.name,
    each.median.toFixed(2),
    (rateOf(each) / 1e6).toFixed(1),
    share.toFixed(2),
    share < aim ? "short" : "",
  ];
});
console.log(
  `${elements} float32 elements (interleaved, median of 9), over all axes, the last or the first axis; ` +
    `goal: ${aim} of the bandwidth of a copy`,
);
console.log(table(["", "ms", "GB/s", "of copy", ""], rows));
