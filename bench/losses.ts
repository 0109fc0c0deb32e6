// Compares losses and embeddings on the cpu backend with plain reads and copies, in one run: cross entropy of 1,024
// rows of 50,257 logits (GPT-2's vocabulary), losses of 16 million elements, and 16,384 tokens from a table of 50,257
// rows of width 768. Bandwidth is the bytes that must move per second: operands and results once each; for the read,
// the elements of a sum; for the copy, the bytes read and written. The aim is at least 0.7 of their bandwidth.

import { noGrad } from "../src/autograd/modes.ts";
import { withBackend } from "../src/backend/policy.ts";
import { grad } from "../src/ops/gradient/backward.ts";
import * as library from "../src/ops/index.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, table } from "./support/measure.ts";

const [lines, classes] = [1024, 50_257];
const [tokens, width] = [16_384, 768];
const elements = 1 << 24;
const float = Float32Array.BYTES_PER_ELEMENT;
const aim = 0.7;

interface Case {
  readonly name: string;
  /** The bytes that must move. */
  readonly moved: number;
  /** The read or copy that it is compared with. */
  readonly beside: "read" | "copy";
  readonly call: () => void;
}

const on = <Result>(body: () => Result): Result => withBackend("cpu", body);
const wave = (shape: readonly number[], step: number): Tensor => {
  const size = shape.reduce((product, length) => product * length, 1);
  return library.tensor(
    Float32Array.from({ length: size }, (_, at) => Math.sin(at * step)),
    { shape, requiresGrad: true },
  );
};
const indices = (count: number, end: number) =>
  library.tensor(Int32Array.from({ length: count }, (_, at) => (at * 7919) % end));

/** A call and its backward pass, which uses the same graph every time. */
function passes(
  name: string,
  compute: () => Tensor,
  of: Tensor[],
  forward: Omit<Case, "name" | "call">,
  backward: number,
) {
  const output = on(compute);
  const gradOutputs = [on(() => library.ones(output.shape, { dtype: "float32" }))];
  const run = () => {
    for (const gradient of on(() => grad([output], of, { gradOutputs, retainGraph: true }))) gradient.dispose();
  };
  return [
    { name, ...forward, call: () => on(() => noGrad(compute).dispose()) },
    { name: `${name}, backward`, moved: backward, beside: "copy" as const, call: run },
  ];
}

const logits = on(() => wave([lines, classes], 0.37));
const halves = on(() => noGrad(() => library.toDType(logits, "bfloat16")));
halves.requiresGrad = true;
const [targets, x, target] = on(
  () => [indices(lines, classes), wave([elements], 0.11), wave([elements], 0.3)] as const,
);
const [ids, weight] = on(() => [indices(tokens, classes), wave([classes, width], 0.7)] as const);
const logitBytes = lines * classes * float;
const rowBytes = tokens * width * float;

const cases: readonly Case[] = [
  ...passes(
    "crossEntropy",
    () => library.crossEntropy(logits, targets),
    [logits],
    { moved: logitBytes, beside: "read" },
    2 * logitBytes,
  ),
  ...passes(
    "crossEntropy, bfloat16",
    () => library.crossEntropy(halves, targets),
    [halves],
    { moved: logitBytes / 2, beside: "read" },
    logitBytes,
  ),
  ...passes(
    "mseLoss",
    () => library.mseLoss(x, target),
    [x],
    { moved: 2 * elements * float, beside: "read" },
    3 * elements * float,
  ),
  ...passes(
    "binaryCrossEntropyWithLogits",
    () => library.binaryCrossEntropyWithLogits(x, target),
    [x],
    { moved: 2 * elements * float, beside: "read" },
    3 * elements * float,
  ),
  ...passes(
    "embedding",
    () => library.embedding(ids, weight),
    [weight],
    { moved: 2 * rowBytes, beside: "copy" },
    rowBytes + classes * width * float,
  ),
  ...passes(
    "embeddingBag of 16",
    () => library.embeddingBag(library.reshape(ids, [tokens / 16, 16]), weight, { mode: "sum" }),
    [weight],
    { moved: rowBytes, beside: "read" },
    rowBytes / 16 + classes * width * float,
  ),
];

const source = Float32Array.from({ length: lines * classes }, (_, at) => at);
const copied = new Float32Array(lines * classes);
const measured = interleaved(
  {
    read: () => on(() => noGrad(() => library.sum(logits)).dispose()),
    copy: () => copied.set(source),
    ...Object.fromEntries(cases.map(({ name, call }) => [name, call])),
  },
  5,
);

const medianOf = (name: string): number => measured.find((each) => each.name === name)!.median;
const rates = { read: logitBytes / medianOf("read"), copy: (2 * logitBytes) / medianOf("copy") };
const rows = cases.map(({ name, moved, beside }) => {
  const rate = moved / medianOf(name);
  const share = rate / rates[beside];
  return [
    name,
    medianOf(name).toFixed(1),
    (rate / 1e6).toFixed(1),
    `${share.toFixed(2)} of a ${beside}`,
    share >= aim ? "" : "below the aim",
  ];
});
console.log(`read ${(rates.read / 1e6).toFixed(1)} GB/s, copy ${(rates.copy / 1e6).toFixed(1)} GB/s\n`);
console.log(table(["operation", "ms", "GB/s", "share", ""], rows));
