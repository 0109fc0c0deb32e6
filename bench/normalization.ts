// Compares normalizations of 16 million float32 numbers on the cpu backend, forward and backward, with a plain copy of
// the same size, in one run. Bandwidth is the bytes that must move per second: for the copy, the bytes read and
// written; for a forward pass, its operands and results; for a backward pass, the rows, the incoming gradients and the
// gradient of the rows. The aim is at least 0.7 of the copy's bandwidth.

import { withBackend } from "../src/backend/policy.ts";
import { clone } from "../src/ops/copy/copy.ts";
import { tensor } from "../src/ops/creation/tensor.ts";
import { grad } from "../src/ops/gradient/backward.ts";
import { layerNorm } from "../src/ops/normalization/layer_norm.ts";
import { addRmsNorm, rmsNorm } from "../src/ops/normalization/rms_norm.ts";
import { reshape } from "../src/ops/view/reshape.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, table } from "./support/measure.ts";

const elements = 1 << 24;
const aim = 0.7;
const bytes = elements * Float32Array.BYTES_PER_ELEMENT;
const lengths = [128, 1024, 4096];

/** The number of arrays of all elements that must move. */
interface Case {
  readonly compute: (operands: Operands) => Tensor[];
  readonly forward: number;
  readonly backward: number;
}

interface Operands {
  readonly x: Tensor;
  readonly residual: Tensor;
  readonly weight: Tensor;
  readonly bias: Tensor;
}

const cases: Readonly<Record<string, Case>> = {
  layerNorm: { compute: ({ x, weight, bias }) => [layerNorm(x, { weight, bias })], forward: 2, backward: 3 },
  rmsNorm: { compute: ({ x, weight }) => [rmsNorm(x, { weight })], forward: 2, backward: 3 },
  addRmsNorm: {
    compute: ({ x, residual, weight }) => Object.values(addRmsNorm(x, residual, { weight })),
    forward: 4,
    backward: 4,
  },
};

const source = Float32Array.from({ length: elements }, (_, index) => Math.sin(index));
const copied = new Float32Array(elements);
const line = withBackend("cpu", () => tensor(source));
const other = withBackend("cpu", () => clone(line));

function operandsOf(length: number): Operands {
  const leaf = (x: Tensor): Tensor => {
    x.requiresGrad = true;
    return x;
  };
  const rows = [elements / length, length];
  const vector = (start: number) => leaf(tensor(source.slice(start, start + length)));
  return {
    x: leaf(reshape(line, rows)),
    residual: leaf(reshape(other, rows)),
    weight: vector(0),
    bias: vector(length),
  };
}

/** Returns both passes of a case, and the bytes that each must move. */
function callsOf(name: string, { compute, forward, backward }: Case, length: number) {
  const operands = operandsOf(length);
  const leaves = Object.values(operands) as Tensor[];
  const outputs = compute(operands);
  const gradOutputs = outputs.map(() => reshape(other, operands.x.shape));
  const release = (made: readonly (Tensor | null)[]) => {
    for (const each of made) each?.dispose();
  };
  const passBack = () => release(grad(outputs, leaves, { gradOutputs, allowUnused: true, retainGraph: true }));
  return [
    { name: `${name}, rows of ${length}`, moved: forward * bytes, call: () => release(compute(operands)) },
    { name: `${name}, rows of ${length}, backward`, moved: backward * bytes, call: passBack },
  ];
}

const calls = withBackend("cpu", () =>
  lengths.flatMap((length) => Object.entries(cases).flatMap(([name, passes]) => callsOf(name, passes, length))),
);
const measured = withBackend("cpu", () =>
  interleaved({
    copy: () => copied.set(source),
    ...Object.fromEntries(calls.map(({ name, call }) => [name, call])),
  }),
);

const movedBy = new Map([["copy", 2 * bytes], ...calls.map(({ name, moved }): [string, number] => [name, moved])]);
const rateOf = ({ name, median }: (typeof measured)[number]): number => movedBy.get(name)! / median;
const copyRate = rateOf(measured[0]);
const rows = measured.map((each) => {
  const share = rateOf(each) / copyRate;
  const figures = [each.median.toFixed(2), (rateOf(each) / 1e6).toFixed(1), share.toFixed(2)];
  return [each.name, ...figures, share < aim ? "short" : ""];
});
console.log(`${elements} float32 numbers (medians of 9, in turn); aim ${aim} of the copy's bandwidth`);
console.log(table(["", "ms", "GB/s", "of copy", ""], rows));
