/** A bias in products with quantized weights: the bits of a sum after the product, in one call. */
import { describe, expect, test } from "bun:test";
import { environmentFlag } from "../../src/core/environment.ts";
import { DTypeError, ShapeError } from "../../src/core/errors.ts";
import {
  add,
  codepaths,
  fromArray,
  grad,
  matmulGgml,
  matmulInt4,
  nn,
  ones,
  quantizedMatmul,
  quantizeGgml,
  quantizeInt4,
  sum,
  type Tensor,
  toDType,
} from "../../src/index.ts";
import { type QuantizedFormat, scaleDTypes } from "../../src/quant/formats.ts";
import { bytesIn } from "../io/bytes.ts";
import { checked, testVariants } from "../linalg/variants.ts";
import { on, places } from "./fixtures.ts";
import { wave, weightsOf } from "./products.ts";

const bits = (x: Tensor): string => Buffer.from(bytesIn(x)).toString("hex");
const row = (size: number, scale = 1): Tensor => wave(1, size, 0.7, scale).reshape([size]);
/** Converts on the reference backend. */
const as = (x: Tensor, dtype: "float32" | "float16" | "bfloat16"): Tensor => on("reference", () => x.to(dtype));
const someFormats = ["q4_0", "q4_K", "f16", { bits: 4, groupSize: 64, symmetric: false }] as const;

function expectSameBits(backend: (typeof places)[number], formats: readonly QuantizedFormat[], counts: number[]): void {
  for (const format of formats)
    for (const dtype of scaleDTypes) {
      const w = weightsOf(format, 37, 256);
      const bias = as(row(37, 3), dtype);
      for (const count of counts) {
        const x = as(wave(count, 256, 1.3), dtype);
        const [expected, got] = on(backend, () => [add(quantizedMatmul(x, w), bias), quantizedMatmul(x, w, { bias })]);
        expect([count, dtype, got.dtype, bits(got)]).toEqual([count, dtype, dtype, bits(expected as Tensor)]);
      }
    }
}

test.each(places)("on %s the result has the bits of a product and a sum", (backend) => {
  expectSameBits(backend, someFormats, backend === "metal" ? [1, 5] : [1, 3, 5, 17]);
});

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("on metal", () => {
  test("few rows and many rows have no findings", () => checked(() => expectSameBits("metal", ["q4_0"], [2, 33])));
  testVariants(import.meta.path, "few rows and many rows have no findings");
});

test("fast products accept a bias too", () => {
  for (const count of [1, 6, 20]) {
    const [x, w, bias] = [wave(count, 256, 1.1), weightsOf("q4_0", 37, 256), row(37)];
    const [expected, got] = on("cpu", () => [
      add(quantizedMatmul(x, w, { precision: "fast" }), bias),
      quantizedMatmul(x, w, { precision: "fast", bias }),
    ]);
    expect(bits(got)).toBe(bits(expected as Tensor));
  }
});

test.each(places)("on %s the bias may be a view, and have another dtype than x", (backend) => {
  const [x, w] = [wave(3, 64, 0.9), quantizeGgml(wave(9, 64, 0.3), "q5_1")];
  const long = row(40);
  for (const bias of [
    long.slice(0, { start: 5, end: 14 }),
    long.slice(0, { start: 3, end: 30, step: 3 }),
    ones([1]).expand([9]),
  ])
    for (const dtype of scaleDTypes) {
      const own = as(bias, dtype);
      const [expected, got] = on(backend, () => [
        add(quantizedMatmul(x, w), toDType(own, "float32")),
        quantizedMatmul(x, w, { bias: dtype === "float32" ? bias : own }),
      ]);
      expect(bits(got)).toBe(bits(expected as Tensor));
    }
});

test.each(places)("on %s gradients match the product's and the sum's", (backend) => {
  const [w, gradient] = [quantizeInt4(wave(5, 64, 0.3)), wave(6, 5, 0.4).reshape([2, 3, 5])];
  for (const dtype of ["float32", "bfloat16"] as const) {
    const [x, bias] = [wave(6, 64, 0.8).reshape([2, 3, 64]), as(row(5), dtype)];
    x.requiresGrad = bias.requiresGrad = true;
    const gradients = (product: () => Tensor) =>
      on(backend, () => {
        const y = product();
        // Second derivatives of y² go through the gradients of the product.
        const [first] = grad([y.mul(y).mul(gradient)], [x], { gradOutputs: [ones([2, 3, 5])], createGraph: true });
        return grad([sum(first.mul(first)), y], [x, bias], { gradOutputs: [ones([]), gradient] }).map(bits);
      });
    const got = gradients(() => quantizedMatmul(x, w, { bias }));
    expect(got).toEqual(gradients(() => add(quantizedMatmul(x, w), bias.to("float32")) as Tensor));
  }
});

test("the bias alone may require a gradient", () => {
  const [x, w, bias] = [wave(4, 64, 0.8), quantizeInt4(wave(5, 64, 0.3)), row(5)];
  bias.requiresGrad = true;
  const y = on("cpu", () => quantizedMatmul(x, w, { bias }));
  expect(grad([y], [bias], { gradOutputs: [wave(4, 5, 0.1)] })[0].toArray()).toEqual(
    sum(wave(4, 5, 0.1), { dim: 0 }).toArray(),
  );
});

test("a layer with a bias is one operation", () => {
  const callsOf = (operation: string) =>
    codepaths().reduce((total, path) => total + (path.operation === operation ? path.calls : 0), 0);
  const layer = new nn.QuantizedLinear(quantizeInt4(wave(5, 64, 0.3)), row(5));
  const x = wave(2, 64, 0.3);
  const [products, sums] = [callsOf("quantizedMatmul"), callsOf("add")];
  const y = on("cpu", () => layer.forward(x));
  expect([callsOf("quantizedMatmul") - products, callsOf("add") - sums]).toEqual([1, 0]);
  expect(bits(y)).toBe(bits(on("cpu", () => add(quantizedMatmul(x, layer.weight), row(5)) as Tensor)));
});

describe("invalid biases are rejected", () => {
  const x = wave(2, 64, 0.3);
  const w = quantizeGgml(ones([4, 64]), "q4_0");

  test("biases whose length differs from the rows of w are rejected", () => {
    for (const shape of [[3], [1], [1, 4], []])
      expect(() => quantizedMatmul(x, w, { bias: ones(shape) })).toThrow(ShapeError);
    expect(() => matmulGgml(x, w, { bias: ones([3]) })).toThrow("[matmulGgml] expected bias to be [4]");
    expect(() => matmulInt4(x, quantizeInt4(ones([4, 64])), { bias: ones([3]) })).toThrow("expected bias to be [4]");
  });

  test("biases of other dtypes are rejected", () => {
    for (const dtype of ["int32", "float64", "bool"] as const)
      expect(() => quantizedMatmul(x, w, { bias: ones([4], { dtype }) })).toThrow(DTypeError);
    expect(() => quantizedMatmul(x, w, { bias: fromArray(new Int32Array(4)) })).toThrow("expected bias to be one of");
  });
});
