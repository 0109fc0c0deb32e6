/**
 * Convolutions on every backend compared with explicit sums. Also tests gradients of gradients, and that results do not
 * depend on threads.
 */
import { describe, test } from "bun:test";
import { enableGrad, isGradEnabled } from "../../../src/autograd/modes.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { conv2d, convTranspose2d, full, maxPool2d, tensor } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { testTable } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import type { Block, Layout } from "../samples.ts";
import type { OperationRow } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];

interface Options {
  readonly stride: number;
  readonly padding: number;
  readonly dilation: number;
  readonly groups: number;
}

/** Σ weight[o, c, k] x[n, c, p · stride + k · dilation − padding], computed term by term. */
function convolved([x, weight]: readonly Block[], { stride, padding, dilation, groups }: Options) {
  const [batch, , height, width] = x.shape as [number, number, number, number];
  const [outputs, channels, rows, columns] = weight.shape as [number, number, number, number];
  const sizeOf = (size: number, kernel: number) =>
    Math.floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1;
  const shape = [batch, outputs, sizeOf(height, rows), sizeOf(width, columns)];
  const at = (block: Block, place: readonly number[]): number => {
    if (place.some((own, axis) => own < 0 || own >= block.shape[axis])) return 0;
    return block.values[place.reduce((index, own, axis) => index * block.shape[axis] + own, 0)];
  };
  const values: number[] = [];
  for (let n = 0; n < batch; n++)
    for (let o = 0; o < outputs; o++)
      for (let p = 0; p < shape[2]; p++)
        for (let q = 0; q < shape[3]; q++) {
          let total = 0;
          for (let c = 0; c < channels; c++)
            for (let i = 0; i < rows; i++)
              for (let j = 0; j < columns; j++) {
                const channel = Math.floor((o * groups) / outputs) * channels + c;
                const [y, z] = [p * stride + i * dilation - padding, q * stride + j * dilation - padding];
                total += at(weight, [o, c, i, j]) * at(x, [n, channel, y, z]);
              }
          values.push(total);
        }
  return { shape, values };
}

const layouts: readonly Layout[] = ["contiguous", "transposed", "strided", "offset", "reversed"];
const plain: Options = { stride: 1, padding: 0, dilation: 1, groups: 1 };
const variants: readonly Options[] = [
  plain,
  { ...plain, padding: 1 },
  { ...plain, stride: 2, padding: 2, groups: 2 },
  { ...plain, dilation: 2, padding: 1, groups: 4 },
  { ...plain, stride: 3, groups: 2 },
];

const convRow: OperationRow<Options> = {
  name: "conv2d",
  compute: ([x, weight], options) => conv2d(x, weight, options),
  dtypes: floats,
  samples: [
    ...variants.map((options, at) => ({
      inputs: [
        { shape: [2, 4, 7, 9], layout: layouts[at] },
        { shape: [8, 4 / options.groups, 3, 2], layout: layouts[(at + 1) % layouts.length] },
      ],
      options,
    })),
    { name: "no batch", inputs: [{ shape: [0, 4, 5, 5] }, { shape: [2, 4, 3, 3] }], options: plain },
  ],
  oracle: (blocks, options) => convolved(blocks, options),
  accuracy: { flash: true },
  sumLength: ([, weight]) => weight.shape.slice(1).reduce((product, size) => product * size, 1),
  gradient: true,
};

testTable("convolutions", [convRow]);

describe("gradients of gradients of convolutions", () => {
  const wave = (shape: readonly number[], step: number): Tensor => {
    const size = shape.reduce((product, own) => product * own, 1);
    return tensor(
      Float64Array.from({ length: size }, (_, at) => Math.sin(at * step + 1)),
      { shape, requiresGrad: true },
    );
  };
  const operations: Readonly<Record<string, (x: Tensor, weight: Tensor) => Tensor>> = {
    conv2d: (x, weight) => conv2d(x, weight, { stride: 2, padding: 1, groups: 2 }),
    convTranspose2d: (x, weight) => convTranspose2d(x, weight, { stride: 2, padding: 1 }),
  };

  test.each(Object.entries(operations))("%s has gradients of gradients", (name, operation) => {
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () => {
        const x = wave([1, 4, 4, 3], 0.7);
        const weight = wave(name === "conv2d" ? [2, 2, 2, 3] : [4, 2, 2, 3], 0.3);
        const slopes = (which: 0 | 1) => (a: Tensor, b: Tensor) => {
          const createGraph = isGradEnabled(); // finite differences need no graph
          const output = enableGrad(() => operation(a, b));
          const gradOutputs = [full(output.shape, 0.75, { dtype: "float64" })];
          return grad([output], [a, b], { gradOutputs, createGraph })[which];
        };
        for (const which of [0, 1] as const) gradcheck((a, b) => slopes(which)(a, b), [x, weight]);
      });
  });
});

const everything = (backend: "cpu" | "metal"): unknown[] => {
  const wave = (shape: readonly number[], step: number): Tensor => {
    const size = shape.reduce((product, own) => product * own, 1);
    return tensor(
      Float32Array.from({ length: size }, (_, at) => Math.sin(at * step)),
      { shape, requiresGrad: true },
    );
  };
  const [x, weight] = [wave([2, 16, 17, 19], 0.11), wave([24, 16, 3, 3], 0.37)];
  const output = maxPool2d(conv2d(x, weight, { padding: 1 }), 2);
  const results = [output, ...grad([output], [x, weight], { gradOutputs: [wave(output.shape, 0.5)] })];
  const [lines, each] = [wave([5, 16, 21, 23], 0.13), wave([16, 1, 3, 3], 0.21)];
  const own = conv2d(lines, each, { padding: 1, stride: 2, groups: 16 });
  results.push(own, ...grad([own], [lines, each], { gradOutputs: [wave(own.shape, 0.7)] }));
  const [pictures, filters] = [wave([backend === "cpu" ? 9 : 2, 32, 14, 7], 0.17), wave([96, 32, 3, 3], 0.29)];
  const pieces = conv2d(pictures, filters, { padding: 1 });
  results.push(pieces, ...grad([pieces], [pictures, filters], { gradOutputs: [wave(pieces.shape, 0.3)] }));
  return results.map((result) => Buffer.from(result.dataSync().buffer).toString("base64"));
};

describe("results of convolutions are bit-identical", () => testSameBits(everything));
