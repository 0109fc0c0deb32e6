/** The cases that are compared with other libraries: names, operands and the minimum work of a call. */
import type { DType } from "../../../src/index.ts";

/** An operand of both libraries: normally distributed numbers, or integers of at least 0 and below `below`. */
export interface Operand {
  readonly shape: readonly number[];
  readonly dtype?: DType;
  readonly below?: number;
}

export interface Case {
  readonly name: string;
  /** A key in the tables of both libraries: `ours.ts` and `peers.py`. */
  readonly operation: string;
  readonly operands: readonly Operand[];
  /** Further settings of the operation. */
  readonly settings?: Readonly<Record<string, number | boolean>>;
  /** The minimum bytes that a call reads and writes, or its floating-point operations. */
  readonly bytes?: number;
  readonly operations?: number;
}

const LARGE = 1 << 24;

const elementwise = (operation: string, moved: number, operands: readonly Operand[]): Case => ({
  name: `${operation} 16 M`,
  operation,
  operands,
  bytes: moved * LARGE,
});
const many: Operand = { shape: [LARGE] };
const table: Operand = { shape: [4096, 4096] };

function product(rows: number, depth: number, columns: number, dtype: DType = "float32"): Case {
  const size = rows === depth && depth === columns ? `${rows}` : `${rows}x${depth}x${columns}`;
  return {
    name: `matmul ${size}${dtype === "float32" ? "" : ` ${dtype}`}`,
    operation: "matmul",
    operands: [
      { shape: [rows, depth], dtype },
      { shape: [depth, columns], dtype },
    ],
    operations: 2 * rows * depth * columns,
  };
}

function attention(rows: number, dim: number, causal: boolean, backward: boolean): Case {
  const shape = [1, 8, rows, dim];
  return {
    name: `attention ${causal ? "causal" : "dense"} 8x${rows}x${dim}${backward ? " with backward" : ""}`,
    operation: backward ? "attentionBackward" : "attention",
    operands: Array.from({ length: backward ? 4 : 3 }, () => ({ shape })),
    settings: { causal },
    operations: ((backward ? 7 : 2) * 2 * 8 * rows * rows * dim) / (causal ? 2 : 1),
  };
}

/** A training step of a GPT: forward, backward, AdamW. */
function gpt(name: string, sizes: Readonly<Record<"layers" | "heads" | "width" | "context", number>>, batch: number) {
  const vocabulary = sizes.layers === 12 ? 50257 : 96;
  const tokens: Operand = { shape: [batch, sizes.context], below: vocabulary, dtype: "int64" };
  return {
    name: `GPT ${name}, a step`,
    operation: "gpt",
    operands: [tokens, tokens],
    settings: { ...sizes, vocabulary },
  };
}

/** The rows of the table, from single operations to training steps. */
export const cases: readonly Case[] = [
  { name: "add, one element", operation: "add", operands: [{ shape: [1] }, { shape: [1] }] },
  elementwise("add", 12, [many, many]),
  elementwise("exp", 8, [many]),
  elementwise("gelu", 8, [many]),
  elementwise("where", 12, [many, many]),
  elementwise("sum", 4, [many]),
  elementwise("variance", 4, [many]),
  elementwise("argmax", 4, [many]),
  { ...elementwise("softmax", 8, [table]), name: "softmax 4096²" },
  {
    ...elementwise("softmax", 4, [{ ...table, dtype: "bfloat16" }]),
    name: "softmax 4096² bfloat16",
  },
  { ...elementwise("layerNorm", 8, [table, { shape: [4096] }, { shape: [4096] }]), name: "layerNorm 4096²" },
  ...(["float32", "bfloat16"] as const).map((dtype) => ({
    ...elementwise("crossEntropy", dtype === "float32" ? 4 : 2, [
      { ...table, dtype },
      { shape: [4096], below: 4096, dtype: "int64" },
    ]),
    name: `crossEntropy 4096²${dtype === "float32" ? "" : ` ${dtype}`}`,
  })),
  { ...elementwise("transposedCopy", 8, [table]), name: "transposed copy 4096²" },
  {
    name: "topk 100 of 1 M",
    operation: "topk",
    operands: [{ shape: [1 << 20] }],
    settings: { count: 100 },
    bytes: 4 << 20,
  },
  { name: "sort 1 M", operation: "sort", operands: [{ shape: [1 << 20] }], bytes: 12 << 20 },
  {
    name: "embedding 50257x768, 8192 rows",
    operation: "embedding",
    operands: [{ shape: [50257, 768] }, { shape: [8192], below: 50257, dtype: "int64" }],
    bytes: 8 * 8192 * 768,
  },
  {
    name: "scatterAdd 1 M to 64 K",
    operation: "scatterAdd",
    operands: [{ shape: [1 << 16] }, { shape: [1 << 20], below: 1 << 16, dtype: "int64" }, { shape: [1 << 20] }],
    bytes: (12 << 20) + (8 << 16),
  },
  { ...elementwise("histogram", 4, [many]), name: "histogram 16 M, 100 bins" },
  {
    name: "ctcLoss 200 times 32x64, 30 labels, with backward",
    operation: "ctcLoss",
    operands: [{ shape: [200, 32, 64] }, { shape: [32, 30], below: 63, dtype: "int64" }],
  },
  ...[64, 128, 256, 512, 1024, 2048].map((size) => product(size, size, size)),
  product(128, 784, 512),
  product(768, 384, 1536),
  product(8, 4096, 4096),
  {
    name: "matmul 64 of 256",
    operation: "matmul",
    operands: [{ shape: [64, 256, 256] }, { shape: [64, 256, 256] }],
    operations: 2 * 64 * 256 ** 3,
  },
  ...[128, 512, 1024].map((size) => product(size, size, size, "bfloat16")),
  product(1024, 1024, 1024, "float16"),
  ...[true, false].flatMap((causal) => [false, true].map((backward) => attention(1024, 64, causal, backward))),
  attention(2048, 128, true, true),
  { ...elementwise("adamW", 28, [many, many]), name: "AdamW 16 M, a step" },
  { name: "MLP 784-512-10, batch 128, forward", operation: "mlpForward", operands: [{ shape: [128, 784] }] },
  {
    name: "MLP 784-512-10, batch 128, a step",
    operation: "mlp",
    operands: [{ shape: [128, 784] }, { shape: [128], below: 10, dtype: "int64" }],
  },
  gpt("0.8 M", { layers: 4, heads: 4, width: 128, context: 64 }, 12),
  gpt("10 M", { layers: 6, heads: 6, width: 384, context: 256 }, 4),
  gpt("124 M", { layers: 12, heads: 12, width: 768, context: 256 }, 1),
];
