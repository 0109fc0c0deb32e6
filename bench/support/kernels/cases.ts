/** Calls whose Metal kernels are counted, with the sizes of a model's layers, small enough for the software device. */
import { noGrad } from "../../../src/autograd/modes.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as ops from "../../../src/ops/index.ts";
import { AdamW } from "../../../src/optim/index.ts";
import { quantizedMatmul, quantizeGgml } from "../../../src/quant/index.ts";
import { manualSeed } from "../../../src/random/generator.ts";
import { bytesOf, type FloatDType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

/** A call. Its operands are on the device before counting starts. */
export interface Case {
  readonly name: string;
  readonly run: () => unknown;
  /** The operands with which peers compute too; empty if the call depends on anything else. */
  readonly operands: readonly Tensor[];
  /** The bytes of operands and results, each counted once. */
  readonly ideal: number;
}

type Shape = readonly number[];
const size = (shape: Shape): number => shape.reduce((product, length) => product * length, 1);

const floats = ["float32", "float16"] as const;
const short: Readonly<Partial<Record<FloatDType, string>>> = { float32: "f32", float16: "f16" };

/** Creates operands of these shapes, and the call; `moved` shapes are counted once each. */
function call(
  name: string,
  dtype: FloatDType,
  shapes: readonly Shape[],
  moved: readonly Shape[],
  compute: (...operands: Tensor[]) => unknown,
): Case {
  const operands = shapes.map((shape) => ops.randn([...shape], { dtype }));
  const ideal = moved.reduce((sum, shape) => sum + size(shape), 0) * bytesOf(dtype);
  return { name: `${name} ${short[dtype]}`, ideal, operands, run: () => compute(...operands) };
}

function products(dtype: FloatDType): Case[] {
  const sizes: readonly (readonly [number, number, number])[] = [
    ...([256, 512] as const).map((side) => [side, side, side] as const),
    ...([1, 2, 4, 8, 16, 32, 64] as const).map((rows) => [rows, 1024, 1024] as const),
    [8, 4096, 1024] as const,
    [8, 1024, 4096] as const,
  ];
  return sizes.map(([m, n, k]) => {
    const shapes = [
      [m, k],
      [k, n],
    ];
    return call(`product ${m}x${n}x${k}`, dtype, shapes, [...shapes, [m, n]], (a, b) => ops.matmul(a, b));
  });
}

function attention(dtype: FloatDType): Case[] {
  const dense = [256, 512].flatMap((length) =>
    [false, true].map((causal) => {
      const shape = [1, 1, length, 64];
      const name = `attention ${length}${causal ? " causal" : ""}`;
      return call(name, dtype, [shape, shape, shape], [shape, shape, shape, shape], (q, k, v) =>
        ops.flashAttention(q, k, v, { causal, path: "fused" } as object),
      );
    }),
  );
  const [query, keys] = [
    [1, 1, 1, 64],
    [1, 1, 4096, 64],
  ];
  const decode = call("decode 1x4096", dtype, [query, keys, keys], [query, keys, keys, query], (q, k, v) =>
    ops.flashAttention(q, k, v, { path: "fused" } as object),
  );
  return [...dense, decode];
}

/** Decoding with grouped heads: several query heads share a key head. */
function groupedDecode(dtype: FloatDType): Case {
  const [query, keys] = [
    [1, 8, 1, 128],
    [1, 2, 2048, 128],
  ];
  const shapes = [query, keys, keys];
  return call("decode of 8 heads on 2", dtype, shapes, [...shapes, query], (q, k, v) =>
    ops.flashAttention(q, k, v, { path: "fused" } as object),
  );
}

/** Both passes of a normalization; the backward pass is counted separately. */
function norms(dtype: FloatDType): Case[] {
  const kinds = {
    rmsNorm: (x: Tensor, weight: Tensor) => ops.rmsNorm(x, { weight }),
    layerNorm: (x: Tensor, weight: Tensor, bias: Tensor) => ops.layerNorm(x, { weight, bias }),
  };
  const shapes = [
    [256, 1024],
    [64, 8192],
  ];
  return Object.entries(kinds).flatMap(([name, compute]) =>
    shapes.flatMap((shape) => {
      const row = [shape[1]];
      const vectors = name === "rmsNorm" ? [row] : [row, row];
      const leaves = [shape, row, row].map((each) => ops.randn(each, { dtype, requiresGrad: true }));
      const [x, weight, bias] = leaves as [Tensor, Tensor, Tensor];
      const output = compute(x, weight, bias);
      const cotangent = ops.randn(shape, { dtype });
      const inputs = leaves.slice(0, 1 + vectors.length);
      const label = `${name} ${shape.join("x")}`;
      const backward = call(`${label} gradient`, dtype, [], [shape, shape, shape, row, ...vectors], () =>
        grad([output], inputs, { gradOutputs: [cotangent], retainGraph: true }),
      );
      const forward = call(label, dtype, [shape, row, row], [shape, shape, ...vectors], (input, w, b) =>
        noGrad(() => compute(input, w, b)),
      );
      return [forward, backward];
    }),
  );
}

/** A layer of a residual network and a depthwise one: both passes, with the backward pass counted separately. */
function convolutions(dtype: FloatDType): Case[] {
  const layers = [
    { shape: [2, 32, 14, 14], weight: [64, 32, 3, 3], groups: 1 },
    { shape: [2, 64, 14, 14], weight: [64, 1, 3, 3], groups: 64 },
  ];
  return layers.flatMap(({ shape, weight, groups }) => {
    const leaves = [shape, weight].map((each) => ops.randn(each, { dtype, requiresGrad: true }));
    const output = ops.conv2d(leaves[0], leaves[1], { padding: 1, groups });
    const cotangent = ops.randn(output.shape, { dtype });
    const label = `conv2d ${shape.join("x")} to ${weight[0]}${groups > 1 ? `, ${groups} groups` : ""}`;
    const moved = [shape, weight, output.shape];
    return [
      call(label, dtype, [shape, weight], moved, (x, w) => ops.conv2d(x, w, { padding: 1, groups })),
      call(`${label} gradient`, dtype, [], [...moved, shape, weight], () =>
        grad([output], leaves, { gradOutputs: [cotangent], retainGraph: true }),
      ),
    ];
  });
}

/** Rows of x times 4-bit weights: one row, and the rows of a tile. */
function quantized(dtype: FloatDType): Case[] {
  const [rows, columns] = [256, 512];
  const w = quantizeGgml(ops.randn([rows, columns]), "q4_0");
  return [1, 64].map((count) => {
    const product = call(`product ${count}x${rows}x${columns} q4_0`, dtype, [[count, columns]], [[count, rows]], (x) =>
      quantizedMatmul(x, w),
    );
    return { ...product, ideal: product.ideal + count * columns * bytesOf(dtype) + w.byteLength };
  });
}

function others(dtype: FloatDType): Case[] {
  const [rows, wide, flat] = [[256, 1024], [64, 8192], [2 ** 18]];
  const other = dtype === "float32" ? "float16" : "float32";
  const indices = ops.tensor(
    Array.from({ length: 256 }, (_, index) => (index * 37) % 1024),
    { dtype: "int64" },
  );
  return [
    ...[rows, wide].map((shape) =>
      call(`softmax ${shape.join("x")}`, dtype, [shape], [shape, shape], (x) => ops.softmax(x)),
    ),
    ...[rows, wide].map((shape) =>
      call(`sum of rows ${shape.join("x")}`, dtype, [shape], [shape, [shape[0]]], (x) => ops.sum(x, { dim: 1 })),
    ),
    call("sum of columns 256x1024", dtype, [rows], [rows, [1024]], (x) => ops.sum(x, { dim: 0 })),
    call("argmax of rows 256x1024", dtype, [rows], [rows], (x) => ops.argmax(x, { dim: 1 })),
    call("dropout 2^18", dtype, [flat], [flat, flat], (x) => ops.dropout(x, { p: 0.1 })),
    call("exp 2^18", dtype, [flat], [flat, flat], (x) => ops.exp(x)),
    call("add 2^18", dtype, [flat, flat], [flat, flat, flat], (a, b) => ops.add(a, b)),
    call("add a row 256x1024", dtype, [rows, [1024]], [rows, rows, [1024]], (a, b) => ops.add(a, b)),
    call(
      `cast to ${short[other]} 2^18`,
      dtype,
      [flat],
      dtype === "float32" ? [flat, [2 ** 17]] : [flat, flat, flat],
      (x) => ops.toDType(x, other),
    ),
    call("cumsum 256x1024", dtype, [rows], [rows, rows], (x) => ops.cumsum(x, 1)),
    call(
      "sort 64x1024",
      dtype,
      [[64, 1024]],
      [
        [64, 1024],
        [64, 1024],
      ],
      (x) => ops.sort(x).values,
    ),
    call("crossEntropy 256x1024", dtype, [rows], [rows], (x) => ops.crossEntropy(x, indices)),
    call(
      "rope 8x128x64",
      dtype,
      [[1, 8, 128, 64]],
      [
        [8, 128, 64],
        [8, 128, 64],
      ],
      (x) => ops.rope(x),
    ),
  ];
}

/** Gradients, counted without their forward passes; and gelu. */
function gradients(dtype: FloatDType): Case[] {
  const [rows, flat, table] = [[256, 1024], [2 ** 18], [2048, 64]];
  const places = (count: number, among: number) =>
    ops.tensor(
      Array.from({ length: count }, (_, index) => (index * 37) % among),
      { dtype: "int64" },
    );
  const classes = places(256, 1024);
  const tokens = places(4096, 2048);
  const of = (name: string, shape: Shape, moved: readonly Shape[], compute: (x: Tensor) => Tensor): Case => {
    const x = ops.randn([...shape], { dtype, requiresGrad: true });
    const output = compute(x);
    output.dataSync(); // gradients with pending checks of the device, such as those of indices, would be copied
    const gradOutputs = [ops.randn([...output.shape], { dtype })];
    return call(`${name} gradient`, dtype, [], moved, () => grad([output], [x], { gradOutputs, retainGraph: true }));
  };
  return [
    call("gelu 2^18", dtype, [flat], [flat, flat], (x) => ops.gelu(x)),
    of("gelu 2^18", flat, [flat, flat, flat], (x) => ops.gelu(x)),
    of("softmax 256x1024", rows, [rows, rows, rows], (x) => ops.softmax(x)),
    of("crossEntropy 256x1024", rows, [rows, rows], (x) => ops.crossEntropy(x, classes)),
    of("embedding 2048x64, 4096 rows", table, [[4096, 64], table], (x) => ops.embedding(tokens, x)),
    of("rope 8x128x64", [1, 8, 128, 64], [[2 ** 17]], (x) => ops.rope(x)),
  ];
}

function optimizer(): Case {
  const parameter = ops.randn([2 ** 16], { requiresGrad: true });
  const adamW = new AdamW([parameter], { lr: 1e-3 });
  parameter.grad = ops.randn([2 ** 16]);
  adamW.step(); // creates the state
  return { name: "AdamW 2^16 f32", ideal: 7 * 4 * 2 ** 16, operands: [], run: () => adamW.step() };
}

/** Creates the same numbers in each run, since the traffic of a sort depends on them. */
export function makeCases(): Case[] {
  manualSeed(1);
  return [
    ...floats.flatMap((dtype) => [...products(dtype), ...attention(dtype), ...norms(dtype), ...others(dtype)]),
    ...floats.flatMap(convolutions),
    ...floats.flatMap(quantized),
    ...floats.flatMap(gradients),
    optimizer(),
    ...floats.map(groupedDecode),
  ];
}
