/** What bench/gpu.ts measures on a GPU: calls of Orchard, each with the same in PyTorch. */
import { withProductLibrary } from "../../../src/backend/metal/product_library.ts";
import { DeviceBuffer, metalKernel, noGrad, optim, type Tensor } from "../../../src/index.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import * as ops from "../../../src/ops/index.ts";
import type { FloatDType } from "../../../src/tensor/dtype.ts";
import { tidy } from "../../../src/tensor/tidy.ts";

/** Variants of a call, by the column of their times. */
type Variants = Readonly<Record<string, () => unknown>>;

export const groups = ["dispatches", "elementwise", "training", "products", "attention"] as const;

export interface Row {
  readonly group: (typeof groups)[number];
  readonly name: string;
  readonly variants: () => Variants;
  /** Statements that make PyTorch's operands, and the expression that is measured. */
  readonly setup?: string;
  readonly expression?: string;
}

const ours = (run: () => unknown): Variants => ({ Orchard: run });
const short: Readonly<Record<string, string>> = { float32: "float32", float16: "float16", bfloat16: "bfloat16" };

function dispatches(): Row[] {
  const kernel = () =>
    metalKernel({
      name: "touch",
      source: `#include <metal_stdlib>
kernel void touch(device float* x [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i >= n) x[i] = 0;
}`,
    });
  const touch = (): (() => void) => {
    const [made, x] = [kernel(), new DeviceBuffer(4096, { zero: true })];
    return () => void made.encode({ x, n: 64 }, { grid: 32, threadgroup: 32 });
  };
  return [
    { group: "dispatches", name: "an empty kernel", variants: () => ours(touch()) },
    {
      group: "dispatches",
      name: "x + y of 64 float32",
      variants: () => {
        const [x, y] = [ops.randn([64]), ops.randn([64])];
        return ours(() => ops.add(x, y));
      },
      setup: "x, y = randn(64), randn(64)",
      expression: "x + y",
    },
  ];
}

const unaryRow = (name: string, shape: number[], run: (x: Tensor) => Tensor, expression: string): Row => ({
  group: "elementwise",
  name,
  variants: () => {
    const x = ops.randn(shape);
    return ours(() => run(x));
  },
  setup: `x = randn(${shape.join(", ")})`,
  expression,
});

const elementwise = (): Row[] => [
  unaryRow("x + x of 64 K float32", [2 ** 16], (x) => ops.add(x, x), "x + x"),
  unaryRow("x + x of 16 M float32", [2 ** 24], (x) => ops.add(x, x), "x + x"),
  unaryRow("exp of 64 K float32", [2 ** 16], (x) => ops.exp(x), "x.exp()"),
  unaryRow("sum of 64 K float32", [2 ** 16], (x) => ops.sum(x), "x.sum()"),
  unaryRow("exp of 16 M float32", [2 ** 24], (x) => ops.exp(x), "x.exp()"),
  unaryRow("sum of 16 M float32", [2 ** 24], (x) => ops.sum(x), "x.sum()"),
  unaryRow("sums of rows, 4096 x 4096", [4096, 4096], (x) => ops.sum(x, { dim: 1 }), "x.sum(1)"),
  unaryRow("largest of rows, 4096 x 4096", [4096, 4096], (x) => ops.amax(x, { dim: 1 }), "x.amax(1)"),
];

const trainingRows = (count: number, width: number): Row[] => {
  const [shape, size] = [`${count} x ${width}`, count * width];
  const operands = (): Tensor[] => [ops.randn([count, width]), ops.randn([count, width])];
  const row = (name: string, run: () => () => unknown, setup: string, expression: string): Row => ({
    group: "training",
    name: `${name}, ${shape}`,
    variants: () => ours(run()),
    setup: `m, n = ${count}, ${width}; x, y, w, b = randn(m, n), randn(m, n), randn(n), randn(n); ${setup}`,
    expression,
  });
  const over = (run: (x: Tensor, y: Tensor) => unknown) => () => {
    const [x, y] = operands();
    return () => run(x, y);
  };
  return [
    row(
      "softmax",
      over((x) => ops.softmax(x)),
      "",
      "x.softmax(1)",
    ),
    row(
      "layer normalization",
      () => {
        const [[x], weight, bias] = [operands(), ops.randn([width]), ops.randn([width])];
        return () => ops.layerNorm(x, [width], { weight, bias });
      },
      "",
      `functional.layer_norm(x, (${width},), w, b)`,
    ),
    row(
      "RMS normalization",
      () => {
        const [[x], weight] = [operands(), ops.randn([width])];
        return () => ops.rmsNorm(x, [width], { weight });
      },
      "",
      `functional.rms_norm(x, (${width},), w)`,
    ),
    row(
      "mean squared error",
      over((x, y) => ops.mseLoss(x, y)),
      "",
      "functional.mse_loss(x, y)",
    ),
    row(
      "cross-entropy",
      () => {
        const [x, target] = [ops.randn([count, width]), ops.randint(0, width, [count])];
        return () => ops.crossEntropy(x, target);
      },
      `t = torch.randint(0, ${width}, (${count},), device="cuda")`,
      "functional.cross_entropy(x, t)",
    ),
    row(
      "step of AdamW",
      () => {
        const p = ops.randn([size], { requiresGrad: true });
        p.grad = ops.randn([size]);
        const optimizer = new optim.AdamW([p], { lr: 1e-3 });
        return () => optimizer.step();
      },
      `p = randn(${size}, grad=True); p.grad = randn(${size}); o = torch.optim.AdamW([p], lr=1e-3, fused=True)`,
      "o.step()",
    ),
  ];
};

const training = (): Row[] => [...trainingRows(64, 1024), ...trainingRows(4096, 4096)];

const byBoth = (run: () => Tensor): Variants => ({
  cuBLASLt: () => withProductLibrary(true, run),
  "Orchard's kernels": () => withProductLibrary(false, run),
});

const productRow = (dtype: FloatDType, m: number, n: number, k: number): Row => ({
  group: "products",
  name: `${m} x ${k} times ${k} x ${n}, ${short[dtype]}`,
  variants: () => {
    const [a, b] = [ops.randn([m, k], { dtype }), ops.randn([k, n], { dtype })];
    return byBoth(() => ops.matmul(a, b));
  },
  setup: `a, b = randn(${m}, ${k}, dtype="${dtype}"), randn(${k}, ${n}, dtype="${dtype}")`,
  expression: "a @ b",
});

const linearRow = (dtype: FloatDType, rows: number, from: number, to: number): Row => ({
  group: "products",
  name: `linear, ${rows} x ${from} to ${to} with bias, ${short[dtype]}`,
  variants: () => {
    const [x, w, bias] = [[rows, from], [to, from], [to]].map((shape) => ops.randn(shape, { dtype }));
    return byBoth(() => ops.linear(x, w, bias));
  },
  setup: `x, w, c = (randn(*s, dtype="${dtype}") for s in [(${rows}, ${from}), (${to}, ${from}), (${to},)])`,
  expression: "functional.linear(x, w, c)",
});

const products = (): Row[] => [
  ...(["float32", "bfloat16", "float16"] as const).map((dtype) => productRow(dtype, 2048, 2048, 2048)),
  ...[512, 1024, 4096].map((size) => productRow("bfloat16", size, size, size)),
  ...(["float32", "bfloat16"] as const).map((dtype) => linearRow(dtype, 4096, 1024, 4096)),
  linearRow("bfloat16", 16, 4096, 4096),
];

function attentionRow(dtype: FloatDType, dim: number, causal: boolean, withGradient: boolean): Row {
  const shape = [1, 16, 2048, dim];
  const operand = `randn(${shape.join(", ")}, dtype="${dtype}", grad=${withGradient ? "True" : "False"})`;
  const call = `functional.scaled_dot_product_attention(q, k, v, is_causal=${causal ? "True" : "False"})`;
  return {
    group: "attention",
    name: `${dtype}, heads of ${dim}${causal ? ", causal" : ""}${withGradient ? ", with gradients" : ""}`,
    variants: () => {
      const [q, k, v] = [1, 2, 3].map(() => ops.randn(shape, { dtype, requiresGrad: withGradient }));
      const cotangent = ops.randn(shape, { dtype });
      const attend = () => ops.flashAttention(q, k, v, { causal });
      return ours(() =>
        withGradient ? tidy(() => grad([attend()], [q, k, v], { gradOutputs: [cotangent] })) : noGrad(() => attend()),
      );
    },
    setup: `q, k, v = ${operand}, ${operand}, ${operand}; g = randn(${shape.join(", ")}, dtype="${dtype}")`,
    expression: withGradient ? `torch.autograd.grad(${call}, (q, k, v), g)` : call,
  };
}

const attention = (): Row[] =>
  [false, true].flatMap((withGradient) => [
    attentionRow("float32", 64, false, withGradient),
    attentionRow("bfloat16", 64, false, withGradient),
    attentionRow("bfloat16", 64, true, withGradient),
    attentionRow("bfloat16", 128, false, withGradient),
  ]);

export const allRows = (): Row[] => [...dispatches(), ...elementwise(), ...training(), ...products(), ...attention()];
