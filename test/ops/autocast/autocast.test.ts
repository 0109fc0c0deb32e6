/** autocast: every operation of the lists gives the same results as on operands that are converted explicitly. */
import { describe, expect, test } from "bun:test";
import * as o from "../../../src/index.ts";
import { castRules } from "../../../src/ops/autocast/lists.ts";
import * as operations from "../../../src/ops/index.ts";
import { calls, makeOperands, type OperationName } from "../calls.ts";

type Tensor = o.Tensor;
type Call = (...values: readonly unknown[]) => unknown;
type Change = (x: Tensor) => Tensor;

const { autocast, nn } = o;
const isFloat = ({ dtype }: Tensor) => dtype.includes("float") && dtype !== "float64";

/** Changes the tensors among arguments. */
function changed(value: unknown, change: Change): unknown {
  if (o.Tensor.isTensor(value)) return change(value);
  if (Array.isArray(value)) return value.map((item) => changed(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changed(each, change)]));
}

const described = (x: Tensor): unknown[] => [x.dtype, x.toArray()];

const tensorsIn = (value: unknown): Tensor[] => {
  const found: Tensor[] = [];
  changed(value, (x) => {
    found.push(x);
    return x;
  });
  return found;
};

const toDType =
  (dtype: o.DType): Change =>
  (x) =>
    isFloat(x) ? o.toDType(x, dtype) : x;

/** Valid arguments with random floats in (0, 1) of a dtype; targets of losses of pairs are 1 or −1. */
function argumentsOf(name: string, dtype: o.DType): readonly unknown[] {
  const generator = new o.Generator(name.length);
  const values = calls[name as OperationName](makeOperands(4));
  return changed(values, (x) => (isFloat(x) ? o.rand(x.shape, { generator }).to(dtype) : x)) as readonly unknown[];
}

const functions: Readonly<Record<string, unknown>> = { ...operations };
const functionOf = (name: string): Call => functions[name] as Call;
const names = [...castRules].filter(([name]) => name !== "multiDot");

describe.each(["bfloat16", "float16"] as const)("operations under autocast to %s use the lower dtype", (low) => {
  test.each(names.filter(([, rule]) => rule === "lower"))("%s computes in the lower dtype", (name) => {
    for (const dtype of ["float32", low] as const) {
      const given = argumentsOf(name, dtype);
      const results = tensorsIn(autocast(low, () => functionOf(name)(...given)));
      const expected = tensorsIn(functionOf(name)(...(changed(given, toDType(low)) as unknown[])));
      expect<unknown>(results.map(described)).toEqual(expected.map((x) => [low, x.toArray()]));
    }
  });

  test.each(names.filter(([, rule]) => rule === "full"))("%s computes in float32", (name) => {
    const given = argumentsOf(name, low);
    const results = tensorsIn(autocast(low, () => functionOf(name)(...given)));
    const expected = tensorsIn(functionOf(name)(...(changed(given, toDType("float32")) as unknown[])));
    expect(results.map(described)).toEqual(expected.map((x) => ["float32", x.toArray()]));
  });

  test.each(names.filter(([, rule]) => rule === "widest"))("%s computes in the widest dtype", (name) => {
    for (const at of [0, 1, 2]) {
      let count = 0;
      const given = changed(argumentsOf(name, low), (x) => (isFloat(x) && count++ === at ? x.to("float32") : x));
      const results = tensorsIn(autocast(low, () => functionOf(name)(...(given as unknown[]))));
      const widest = tensorsIn(given).some(({ dtype }) => dtype === "float32") ? "float32" : low;
      const expected = tensorsIn(functionOf(name)(...(changed(given, toDType(widest)) as unknown[])));
      expect(results.map(described)).toEqual(expected.map((x) => [widest, x.toArray()]));
    }
  });
});

test("attention computes all of its parts in the lower dtype, fused or not", () => {
  o.manualSeed(6);
  const [q, k, v] = [o.randn([2, 9, 8]), o.randn([2, 7, 8]), o.randn([2, 7, 8])];
  const low = [q, k, v].map(toDType("bfloat16")) as [Tensor, Tensor, Tensor];
  for (const path of ["fused", "unfused"] as const) {
    const options = { path, returnLogSumExp: true } as const;
    const result = autocast("bfloat16", () => o.flashAttention(q, k, v, options));
    const expected = o.flashAttention(...low, options);
    expect(tensorsIn(result).map(described)).toEqual(tensorsIn(expected).map(described));
  }
});

test("other dtypes and operations are not converted", () => {
  const [wide, integers] = [o.ones([2, 2], { dtype: "float64" }), o.ones([2, 2], { dtype: "int32" })];
  autocast("bfloat16", () => {
    expect<unknown>([wide.matmul(wide).dtype, integers.matmul(integers).dtype]).toEqual(["float64", "int32"]);
    expect<unknown>([wide.exp().dtype, wide.sum().dtype, integers.sum().dtype]).toEqual([
      "float64",
      "float64",
      "int64",
    ]);
    expect<unknown>([o.ones([2]).add(1).dtype, o.ones([2], { dtype: "float16" }).relu().dtype]).toEqual([
      "float32",
      "float16",
    ]);
    expect(o.linalg.cholesky(o.eye(3)).dtype).toBe("float32");
    expect(o.linalg.pinv(o.eye(3), { hermitian: true }).dtype).toBe("float32");
    expect(o.cdist(o.rand([40, 3]), o.rand([40, 3])).dtype).toBe("float32");
    expect(o.ones([2], { dtype: "float16" }).exp_().dtype).toBe("float16");
    expect<o.DType>(o.ones([2], { dtype: "float16" }).pow(2).dtype).toBe("float32");
    expect<o.DType>(o.linalg.multiDot([o.ones([2, 3]), o.ones([3, 2])]).dtype).toBe("bfloat16");
  });
});

test("autocast nests, can be disabled, ends, and lasts over awaits", async () => {
  const x = o.ones([2, 2]);
  const dtype = (): string => x.matmul(x).dtype;
  const seen: string[] = [dtype()];
  autocast("bfloat16", () => {
    seen.push(dtype());
    autocast("float16", () => seen.push(dtype()));
    autocast(null, () => {
      seen.push(dtype());
      autocast("float16", () => seen.push(dtype()));
    });
    seen.push(dtype());
  });
  expect([...seen, dtype()]).toEqual(["float32", "bfloat16", "float16", "float32", "float16", "bfloat16", "float32"]);
  const later = autocast("bfloat16", async () => {
    await Promise.resolve();
    return dtype();
  });
  expect<string[]>([dtype(), await later, dtype()]).toEqual(["float32", "bfloat16", "float32"]);
  expect(() =>
    autocast("bfloat16", () => {
      throw new TypeError("of the body");
    }),
  ).toThrow("of the body");
  expect(dtype()).toBe("float32");
  for (const values of [["float32", dtype], ["bfloat16"], ["bfloat16", 1], ["bfloat16", dtype, 1]])
    expect(() => (autocast as Call)(...values)).toThrow(o.ArgumentError);
});

test("gradients match explicit conversions, in the dtypes of the parameters", () => {
  o.manualSeed(4);
  const [x, w, b] = [o.randn([5, 3]), o.randn([4, 3], { requiresGrad: true }), o.randn([4], { requiresGrad: true })];
  const targets = o.tensor([0n, 1n, 2n, 3n, 0n]);
  const gradients = (loss: Tensor) => o.grad(loss, [w, b]).map(described);
  const loss = () => autocast("bfloat16", () => o.crossEntropy(o.linear(x, w, b).tanh(), targets));
  const [lowX, lowW, lowB] = [x, w, b].map((each) => each.to("bfloat16")) as [Tensor, Tensor, Tensor];
  const expected = gradients(o.crossEntropy(o.linear(lowX, lowW, lowB).tanh().to("float32"), targets));
  expect(gradients(loss())).toEqual(expected);
  expect(expected.map(([dtype]) => dtype)).toEqual(["float32", "float32"]);
  // `backward` inside autocast has the same result
  expect(autocast("bfloat16", () => gradients(loss()))).toEqual(expected);
  const checkpointed = autocast("bfloat16", () =>
    nn.checkpoint((input) => o.crossEntropy(o.linear(input, w, b).tanh(), targets), x),
  );
  expect(gradients(checkpointed)).toEqual(expected);
});

/** Modules with an input; each must run forward and backward. */
const modules: Readonly<Record<string, () => readonly [run: () => Tensor, parameters: readonly Tensor[]]>> = {
  convolutions() {
    const model = new nn.Sequential(
      ...[new nn.Conv2d(3, 4, 3), new nn.BatchNorm2d(4), new nn.ReLU(), new nn.ConvTranspose2d(4, 3, 3)],
    );
    return [() => model.forward(o.rand([2, 3, 6, 6])) as Tensor, model.parameters()];
  },
  LSTM() {
    const model = new nn.Sequential(new nn.Linear(4, 4));
    const lstm = new nn.LSTM(4, 3, { numLayers: 2, bidirectional: true });
    const run = () => lstm.forward(model.forward(o.rand([5, 2, 4])) as Tensor, { hidden: o.zeros([4, 2, 3]) }).output;
    return [run, [...model.parameters(), ...lstm.parameters()]];
  },
  GRU() {
    const gru = new nn.GRU(4, 3);
    return [() => gru.forward(o.rand([5, 2, 4]), { lengths: [5, 3] }).output, gru.parameters()];
  },
  GRUCell() {
    const cell = new nn.GRUCell(4, 3);
    return [() => cell.forward(o.rand([2, 4]), o.rand([2, 3])), cell.parameters()];
  },
  LSTMCell() {
    const cell = new nn.LSTMCell(4, 3);
    const run = () => cell.forward(o.rand([2, 4]), cell.forward(o.rand([2, 4]))).hidden;
    return [run, cell.parameters()];
  },
  attention() {
    const attention = new nn.MultiheadAttention(8, 2);
    const norm = new nn.LayerNorm([8]);
    const run = () => {
      const x = norm.forward(o.rand([3, 2, 8]));
      return attention.forward(x, x, x, { needWeights: false }).output;
    };
    return [run, [...attention.parameters(), ...norm.parameters()]];
  },
  transformer() {
    const model = new nn.TransformerEncoderLayer(8, 2, { dimFeedforward: 16 });
    return [() => model.forward(o.rand([3, 2, 8])), model.parameters()];
  },
  GPT() {
    const model = new nn.GPT({ vocabularySize: 11, contextLength: 6, layers: 2, heads: 2, width: 8 });
    return [() => model.forward(o.randint(0, 11, [2, 6])), model.parameters()];
  },
  Llama() {
    const model = new nn.Llama({ vocabularySize: 11, contextLength: 6, layers: 2, heads: 2, width: 8 });
    return [() => model.forward(o.randint(0, 11, [2, 6])), model.parameters()];
  },
};

test.each(Object.entries(modules))("%s trains in both dtypes, near the gradients of float32", (_name, make) => {
  o.manualSeed(1);
  const [run, parameters] = make();
  const gradientsIn = (dtype: o.AutocastDType | null) => {
    o.manualSeed(2);
    const loss = autocast(dtype, () => {
      const output = run();
      return o.mseLoss(output, o.full(output.shape, 0.5));
    });
    expect(loss.dtype).toBe("float32");
    return o.grad(loss, [...parameters]);
  };
  const exact = gradientsIn(null);
  const largest = (x: Tensor): number => Number(x.abs().max().item());
  const scale = Math.max(...exact.map(largest));
  for (const dtype of ["bfloat16", "float16"] as const)
    for (const [at, gradient] of gradientsIn(dtype).entries()) {
      expect(gradient.dtype).toBe("float32");
      expect(largest(gradient.sub(exact[at])) / scale).toBeLessThan(0.05);
    }
});
