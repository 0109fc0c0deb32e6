/** Writes unary and binary operations, reductions and others as ONNX, and compares results with Orchard's. */
import { expect, test } from "bun:test";
import * as library from "../../src/index.ts";
import { io, noGrad, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { of } from "./written.ts";

type Results = Record<string, Tensor>;
type Compute = (...inputs: Tensor[]) => Results;

/** Returns the results of the named functions for the same inputs. */
const each =
  (names: string): Compute =>
  (...inputs) =>
    Object.fromEntries(
      names.split(" ").map((name) => {
        const call = (library as unknown as Record<string, (...all: Tensor[]) => Tensor>)[name];
        return [name, call(...inputs)];
      }),
    );

const x = tensor([
  [-0.9, -0.25, 0, 0.5],
  [0.75, 0.1, -0.6, 0.25],
]);
/** Some elements equal elements of x. */
const y = tensor([
  [-0.9, 0.25, 0, -0.5],
  [0.5, 0.1, 0.6, 0.75],
]);
const above = tensor([[1.5, 2, 3, 1.25]]);
const special = tensor([[Number.NaN, Infinity, -Infinity, 0]]);
const bools = [tensor([[true, true, false, false]]), tensor([[true, false, true, false]])] as const;

const cases: Readonly<Record<string, readonly [Compute, ...Tensor[]]>> = {
  "functions of one operand": [each("tan asin acos atanh square expm1 exp2 selu hardtanh softsign hardswish"), x],
  "functions of large numbers": [each("acosh log10 log2 sqrt rsqrt log1p ceil floor round"), above],
  "classes of numbers": [each("isnan isinf"), special],
  "functions of two operands": [each("eq ne lt le gt ge maximum minimum add sub mul"), x, y],
  "powers and quotients": [each("pow div"), above, y],
  logic: [each("logicalAnd logicalOr logicalXor"), ...bools],
  not: [each("logicalNot"), bools[0]],
  activations: [
    (a) => ({
      elu: library.elu(a, { alpha: 0.7 }),
      softplus: library.softplus(a, { beta: 2 }),
      leaky: library.leakyRelu(a, { negativeSlope: 0.3 }),
      tanh: library.gelu(a, { approximate: "tanh" }),
      gelu: library.gelu(a),
      least: library.clamp(a, { min: -0.2 }),
      most: library.clamp(a, { max: 0.2 }),
    }),
    x,
  ],
  "interpolation and gates": [(a, b) => ({ lerp: library.lerp(a, b, 0.3), swiglu: library.swiglu(a, b) }), x, y],
  reductions: [
    (a) => ({
      prod: library.prod(a, { dim: 1 }),
      amin: library.amin(a, { dim: 0, keepdim: true }),
      amax: library.amax(a, { dim: 1 }),
      one: library.norm(a, { p: 1, dim: 1 }),
      ...library.max(a, { dim: 1 }),
      least: library.min(a, { dim: 0 }).values,
      argmin: library.argmin(a, { dim: 1 }),
    }),
    x,
  ],
  triangles: [
    (a) => ({
      upper: library.triu(a, 1),
      lower: library.tril(a, -1),
      all: library.tril(a, 1),
    }),
    x,
  ],
  products: [
    (a, b) => ({
      scaled: library.addmm(tensor([[1, 2]]), a, library.transpose(b, 0, 1), { alpha: 2, beta: 3 }),
      plain: library.matmul(a, library.transpose(b, 0, 1)),
    }),
    x,
    y,
  ],
  places: [
    (a) => ({
      gathered: library.gather(
        a,
        1,
        tensor([
          [3n, 0n, 1n],
          [2n, 2n, 0n],
        ]),
      ),
      rows: library.indexSelect(a, 0, tensor([1n, 0n, 1n])),
      sums: library.cumsum(a, { dim: 0 }),
    }),
    x,
  ],
};

test.each(Object.keys(cases))("onnxruntime computes %s as the module does", (name) =>
  withBackend("cpu", async () => {
    const [compute, ...inputs] = cases[name];
    const given = Object.fromEntries(inputs.map((input, at) => [`input${at}`, input]));
    const module = of((...all) => compute(...all));
    const model = await io.loadOnnx(await io.saveOnnx(module as never, given));
    const results = (await model.run(given)) as Results;
    const wanted = noGrad(() => compute(...inputs));
    for (const [key, expected] of Object.entries(wanted)) {
      const [got, own] = [results[key], expected];
      expect([key, got.describe()]).toEqual([key, own.describe()]);
      const [actual, right] = [got, own].map((one) => [...one.flatten().to("float64").dataSync()].map(Number));
      for (const [at, value] of right.entries())
        if (Number.isFinite(value))
          expect(Math.abs(actual[at] - value)).toBeLessThanOrEqual(3e-7 * (1 + Math.abs(value)));
        else expect([key, actual[at]]).toEqual([key, value]);
    }
  }),
);
