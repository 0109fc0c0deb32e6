/** Gated products with quantized weights, compared with float64 products of the weights, and with two products. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { DTypeError, ShapeError } from "../../src/core/errors.ts";
import {
  codepaths,
  dequantize,
  gelu,
  grad,
  mul,
  ones,
  quantize,
  quantizedMatmul,
  quantizedSwiglu,
  quantizeGgml,
  quantizeInt4,
  swiglu,
  type Tensor,
  zeros,
} from "../../src/index.ts";
import { formatName, type QuantizedFormat, scaleDTypes } from "../../src/quant/formats.ts";
import type { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import { bytesIn } from "../io/bytes.ts";
import { checked, testVariants } from "../linalg/variants.ts";
import { on, places } from "./fixtures.ts";
import { formats, numbers, wave, weightsOf } from "./products.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  configure(native, "threads", "auto");
});

type Activation = "silu" | "gelu" | "geluTanh";
const activations = ["silu", "gelu", "geluTanh"] as const;

const logistic = (v: number): number => 1 / (1 + Math.exp(-v));
/** Φ by Simpson's rule from 0: errors are below 1e-12 up to |x| = 8. */
function normal(x: number): number {
  const [steps, end] = [400, Math.min(Math.max(x, -8), 8)];
  let sum = 0;
  for (let at = 0; at <= steps; at++) {
    const weight = at === 0 || at === steps ? 1 : at % 2 === 1 ? 4 : 2;
    sum += weight * Math.exp(-(((end * at) / steps) ** 2) / 2);
  }
  return 0.5 + (sum * end) / steps / 3 / Math.sqrt(2 * Math.PI);
}
const formulas: Readonly<Record<Activation, (x: number) => number>> = {
  silu: (x) => x * logistic(x),
  gelu: (x) => x * normal(x),
  geluTanh: (x) => x * logistic(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)),
};

const roundings = { float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 } as const;

interface Case {
  readonly x: Tensor;
  readonly gate: QuantizedTensor;
  readonly up: QuantizedTensor;
  readonly gateBias: Tensor | null;
  readonly upBias: Tensor | null;
}

/** A product with its bias in float64, and the error bound of the computed product, as in test/quant/products.ts. */
function productOf(x: Float64Array, w: Float64Array, rows: number, bias: Float64Array | null, rounding: number) {
  const columns = w.length / rows;
  return (row: number, out: number) => {
    let [total, magnitude] = [0, 0];
    for (let term = 0; term < columns; term++) {
      const own = x[row * columns + term] * w[out * columns + term];
      total += own;
      magnitude += Math.abs(own);
    }
    const value = total + (bias?.[out] ?? 0);
    const error = 2 * Math.sqrt(columns) * 2 ** -24 * magnitude + rounding * (Math.abs(total) + Math.abs(value));
    return { value, error };
  };
}

/** The largest ratio of an error to its bound: the errors of both products pass through a slope of at most 1.13. */
function worstRatio(got: Tensor, { x, gate, up, ...own }: Case, activation: Activation): number {
  const rows = gate.shape[0];
  const rounding = roundings[got.dtype as "float32"];
  const valuesOf = (w: QuantizedTensor) => numbers(on("reference", () => dequantize(w, { dtype: "float32" })));
  const factors = numbers(x);
  const gates = productOf(factors, valuesOf(gate), rows, own.gateBias && numbers(own.gateBias), rounding);
  const ups = productOf(factors, valuesOf(up), rows, own.upBias && numbers(own.upBias), rounding);
  const values = numbers(got);
  expect(values.length).toBe((factors.length / gate.shape[1]) * rows);
  const smallest = got.dtype === "float16" ? 2 ** -24 : 2 ** -148;
  return Math.max(
    0,
    ...[...values].map((value, at) => {
      const [a, b] = [gates(Math.floor(at / rows), at % rows), ups(Math.floor(at / rows), at % rows)];
      const factor = formulas[activation](a.value);
      const exact = factor * b.value;
      const passed = 1.13 * a.error * (Math.abs(b.value) + b.error) + Math.abs(factor) * b.error;
      return Math.abs(value - exact) / (passed + (rounding + 2 ** -22) * Math.abs(exact) + smallest);
    }),
  );
}

const other = (w: QuantizedTensor): QuantizedTensor => {
  const turned = { packed: w.parts.packed.flip(0).contiguous() };
  const [scales, biases] = [w.parts.scales?.flip(0).contiguous(), w.parts.biases?.flip(0).contiguous()];
  const Class = w.constructor as typeof QuantizedTensor;
  return new Class(w.format, w.shape, w.dtype, { ...turned, scales, biases });
};

/** Converts on the reference backend. */
const as = (x: Tensor, dtype: "float32" | "float16" | "bfloat16"): Tensor => on("reference", () => x.to(dtype));
const row = (size: number, step: number): Tensor => wave(1, size, step).reshape([size]);
const hex = (x: Tensor): string => Buffer.from(bytesIn(x)).toString("hex");

function caseOf(format: QuantizedFormat, count: number, rows: number, columns: number, dtype = "float32"): Case {
  const own = dtype as "float32";
  const gate = weightsOf(format, rows, columns);
  return {
    x: as(wave(count, columns, 1.3), own),
    gate,
    up: other(gate),
    gateBias: as(row(rows, 0.7), own),
    upBias: as(row(rows, 0.3), own),
  };
}

function expectCase(own: Case, activation: Activation, where: string, backend: (typeof places)[number]): void {
  const { x, gate, up, gateBias, upBias } = own;
  for (const biases of [
    { gateBias, upBias },
    { gateBias: null, upBias },
    { gateBias, upBias: null },
  ]) {
    const got = on(backend, () => quantizedSwiglu(x, gate, up, { activation, ...biases }));
    expect([where, got.dtype, got.shape]).toEqual([where, x.dtype, [x.shape[0], gate.shape[0]]]);
    expect([where, worstRatio(got, { ...own, ...biases }, activation) <= 1]).toEqual([where, true]);
  }
}

describe.each(formats.map((format) => [formatName(format), format] as const))("quantizedSwiglu, %s", (name, format) => {
  test.each(places)("quantizedSwiglu of one or more rows is right on %s", (backend) => {
    for (const count of [1, 2, 4, 5, 33])
      expectCase(caseOf(format, count, 19, 256), "silu", `${name}, ${count}`, backend);
  });
});

test.each(places)("every activation and dtype is right on %s", (backend) => {
  for (const activation of activations)
    for (const dtype of scaleDTypes)
      for (const count of [1, 7, 17])
        expectCase(caseOf("q5_1", count, 70, 64, dtype), activation, `${activation}, ${dtype}, ${count}`, backend);
});

/** swiglu of two products, or its replacement. */
function apart({ x, gate, up, gateBias, upBias }: Case, activation: Activation, precision: "exact" | "fast"): Tensor {
  const [first, second] = [
    quantizedMatmul(x, gate, { precision, bias: gateBias }),
    quantizedMatmul(x, up, { precision, bias: upBias }),
  ];
  if (activation === "silu") return swiglu(first, second) as Tensor;
  return mul(gelu(first, { approximate: activation === "gelu" ? "none" : "tanh" }), second) as Tensor;
}

function expectBitsOfTwo(backend: (typeof places)[number], counts: readonly number[]): void {
  for (const format of ["q4_0", "q4_K", "q8_0", "f16", { bits: 4, groupSize: 64, symmetric: false }] as const)
    for (const dtype of scaleDTypes)
      for (const precision of ["exact", "fast"] as const)
        for (const count of counts) {
          const { x, gate, up, ...biases } = caseOf(format, count, 77, 256, dtype);
          const [expected, got] = on(backend, () => [
            apart({ x, gate, up, ...biases }, "silu", precision),
            quantizedSwiglu(x, gate, up, { precision, ...biases }),
          ]);
          const where = `${formatName(gate.format)}, ${dtype}, ${precision}, ${count}`;
          expect([where, hex(got)]).toEqual([where, hex(expected)]);
        }
}

test.each(places)("on %s the result has the bits of swiglu of two products", (backend) => {
  expectBitsOfTwo(backend, backend === "metal" ? [1, 5] : [1, 3, 5, 17]);
});

test.each(isas)("with %s the result has the bits of swiglu of two products", (isa) => {
  configure(native, "isa", isa);
  expectBitsOfTwo("cpu", [1, 4, 6]);
  configure(native, "isa", initial);
});

/** A tile has 960 products for few rows of x. For many rows, 2²¹ weights are unpacked at once. */
test.each([
  [1, 971, 64],
  [8, 133, 64],
  [15, 77, 64],
  [17, 70, 2 ** 15],
])("%i rows of x by %i of weights, in several tiles, are bit-identical to two products", (count, rows, columns) => {
  for (const format of columns > 64
    ? (["q4_0"] as const)
    : (["q4_0", { bits: 4, groupSize: 64, symmetric: false }] as const)) {
    const { x, gate, up, ...biases } = caseOf(format, count, rows, columns);
    for (const precision of ["exact", "fast"] as const) {
      const [expected, got] = on("cpu", () => [
        apart({ x, gate, up, ...biases }, "silu", precision),
        quantizedSwiglu(x, gate, up, { precision, ...biases }),
      ]);
      expect(hex(got) === hex(expected)).toBe(true);
    }
  }
});

test("in float32 gelu is bit-identical to two products too", () => {
  for (const activation of ["gelu", "geluTanh"] as const)
    for (const count of [1, 18]) {
      const own = caseOf("q4_0", count, 77, 256);
      const [expected, got] = on("cpu", () => [
        apart(own, activation, "exact"),
        quantizedSwiglu(own.x, own.gate, own.up, { activation, gateBias: own.gateBias, upBias: own.upBias }),
      ]);
      expect(hex(got)).toBe(hex(expected));
    }
});

test("products of many rows of x with several blocks of rows are right", () => {
  const own = caseOf("q8_0", 18, 1100, 2048);
  const [expected, got] = on("cpu", () => [
    apart(own, "silu", "exact"),
    quantizedSwiglu(own.x, own.gate, own.up, { gateBias: own.gateBias, upBias: own.upBias }),
  ]);
  expect(hex(got)).toBe(hex(expected));
});

test("any number of threads gives the same bits", () => {
  for (const format of ["q4_0", "q4_K", "f16", { bits: 3, groupSize: 32, symmetric: true }] as const)
    for (const precision of ["exact", "fast"] as const) {
      const all = [1, 4, 7, 16].map((count) => caseOf(format, count, 333, 512));
      const bits = [1, 2, 5].map((threads) => {
        configure(native, "threads", String(threads));
        return on("cpu", () => all.map(({ x, gate, up }) => hex(quantizedSwiglu(x, gate, up, { precision }))));
      });
      expect(new Set(bits.map((own) => own.join())).size).toBe(1);
    }
  configure(native, "threads", "auto");
});

describe("quantizedSwiglu has gradients of both orders", () => {
  const asked = (own: Case): Case => {
    const [x, gateBias, upBias] = [own.x, own.gateBias!, own.upBias!].map((each) => each.clone());
    for (const each of [x, gateBias, upBias]) each.requiresGrad = true;
    return { ...own, x: x, gateBias: gateBias, upBias: upBias };
  };

  test.each(places)("on %s gradients of first and second order match those of two products", (backend) => {
    for (const activation of activations) {
      const own = asked(caseOf("q4_1", 3, 7, 64));
      const cotangent = wave(3, 7, 0.4);
      const gradientsOf = (body: () => Tensor) =>
        on(backend, () => {
          const inputs = [own.x, own.gateBias!, own.upBias!];
          const first = grad([body()], inputs, { gradOutputs: [cotangent], createGraph: true });
          const second = grad(first, inputs, { gradOutputs: first.map((each) => ones([...each.shape])) });
          return [...first, ...second].map(numbers);
        });
      const { x, gate, up, ...biases } = own;
      const got = gradientsOf(() => quantizedSwiglu(x, gate, up, { activation, ...biases }));
      const expected = gradientsOf(() => apart(own, activation, "exact"));
      for (const [at, values] of expected.entries()) {
        const most = Math.max(...values.map(Math.abs));
        for (const [index, value] of values.entries())
          expect(Math.abs(got[at][index] - value)).toBeLessThanOrEqual(2e-6 * most);
      }
    }
  });

  test("one bias alone may need a gradient; with fast precision, gradients are those of the exact product", () => {
    const own = asked(caseOf("q8_0", 2, 5, 64));
    const { gate, up, gateBias, upBias } = own;
    const x = own.x.detach();
    const of = (body: () => Tensor, inputs: Tensor[]) =>
      on("cpu", () => grad([body()], inputs, { gradOutputs: [wave(2, 5, 0.4)] }).map(hex));
    expect(of(() => quantizedSwiglu(x, gate, up, { upBias }), [upBias!])).toEqual(
      of(() => apart({ x, gate, up, gateBias: null, upBias }, "silu", "exact"), [upBias!]),
    );
    expect(of(() => quantizedSwiglu(own.x, gate, up, { precision: "fast", gateBias }), [own.x, gateBias!])).toEqual(
      of(() => apart({ ...own, upBias: null }, "silu", "exact"), [own.x, gateBias!]),
    );
  });
});

describe("weights of different formats are multiplied separately", () => {
  const reasons = () =>
    codepaths()
      .filter(({ operation, reason }) => operation === "quantizedSwiglu" && reason.startsWith("two products"))
      .map(({ reason }) => reason);
  const x = wave(3, 64, 0.8);
  const values = wave(9, 64, 0.3);

  test("weights that differ in format are multiplied separately, and the codepath says so", () => {
    for (const [gate, up, reason] of [
      [quantizeGgml(values, "q4_0"), quantizeGgml(values, "q8_0"), "gate is q4_0, up is q8_0"],
      [quantizeInt4(values), quantize(values, { bits: 3 }), "up is affine 3 bits, groups of 64"],
      [
        quantizeInt4(values, { scaleDType: "float16" }),
        quantizeInt4(values, { scaleDType: "bfloat16" }),
        "scales of gate are float16, those of up bfloat16",
      ],
    ] as const) {
      const own = { x, gate, up, gateBias: row(9, 0.2), upBias: null };
      const [expected, got] = on("cpu", () => [
        apart(own, "silu", "exact"),
        quantizedSwiglu(x, gate, up, { gateBias: own.gateBias }),
      ]);
      expect(hex(got)).toBe(hex(expected));
      expect(reasons().some((own) => own.includes(reason))).toBe(true);
    }
  });

  test("weights that differ in shape are rejected", () => {
    const gate = quantizeGgml(values, "q4_0");
    expect(() => quantizedSwiglu(x, gate, quantizeGgml(ones([8, 64]), "q4_0"))).toThrow(ShapeError);
    expect(() => quantizedSwiglu(x, gate, quantizeGgml(ones([8, 64]), "q4_0"))).toThrow("the shape of gate, [9, 64]");
    expect(() => quantizedSwiglu(ones([2, 32]), gate, gate)).toThrow("expected x to have 64 values");
    expect(() => quantizedSwiglu(x, gate, gate, { upBias: ones([3]) })).toThrow("expected upBias to be [9]");
    expect(() => quantizedSwiglu(x.to("float64"), gate, gate)).toThrow(DTypeError);
  });
});

test.each(places)("empty operands are accepted, on %s", (backend) => {
  const w = quantizeGgml(ones([4, 64]), "q4_0");
  expect(on(backend, () => quantizedSwiglu(zeros([0, 64]), w, w)).shape).toEqual([0, 4]);
  const none = quantizeGgml(zeros([4, 0]), "q4_0");
  const got = on(backend, () => quantizedSwiglu(zeros([3, 0]), none, none, { upBias: ones([4]), gateBias: ones([4]) }));
  for (const value of numbers(got)) expect(value).toBeCloseTo(logistic(1), 6);
});

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("on metal", () => {
  const name = "few rows and many, at the edges of tiles, in every format, checked";
  test(name, () => {
    checked(() => {
      for (const format of formats) expectCase(caseOf(format, 3, 37, 256), "silu", formatName(format), "metal");
      for (const [count, rows] of [
        [1, 1],
        [4, 65],
        [5, 33],
        [66, 1000],
      ] as const)
        expectCase(caseOf("q4_0", count, rows, 64), "silu", `${count} x ${rows}`, "metal");
      for (const activation of activations) expectCase(caseOf("mxfp4", 6, 20, 64), activation, activation, "metal");
    });
  });
  testVariants(import.meta.path, name);
});
