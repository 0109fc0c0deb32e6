/** Quantized tensors in a program: they print, move, are freed, and are rejected by operations. */
import { describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { ArgumentError, DisposedError, OrchardError } from "../../src/core/errors.ts";
import * as orchard from "../../src/index.ts";
import * as operations from "../../src/ops/index.ts";
import { collectGarbage } from "../support/garbage.ts";

const { dequantize, matmul, memory, ones, quantize, quantizeGgml, QuantizedTensor, tidy, withBackend } = orchard;

const liveBytes = () => memory().host.liveBytes;

const w = quantizeGgml(ones([64, 256]), "q4_0");

test("a quantized tensor knows its format, shape, dtype and size", () => {
  expect([w.format, w.shape, w.dtype, w.rank, w.size]).toEqual(["q4_0", [64, 256], "float32", 2, 16384]);
  expect([w.byteLength, w.bitsPerValue]).toEqual([9216, 4.5]);
  const half = quantize(ones([8, 128]).to("float16"), { bits: 6 });
  expect(half.dtype).toBe("float16");
  expect(half.bitsPerValue).toBe(6.5); // 6 bits, and two float16 for each 64 values
  expect(dequantize(half).dtype).toBe("float16");
  expect(quantize(ones([1, 64]).to("float64")).dtype).toBe("float32");
});

test("a quantized tensor prints without values", () => {
  const text = "QuantizedTensor q4_0[64, 256], 9216 bytes, 4.5 bits a value, dequantizes to float32";
  expect([String(w), `${w}`, inspect(w)]).toEqual([text, text, text]);
  expect(String(quantize(ones([2, 64]), { symmetric: true }))).toContain("symmetric 4 bits, groups of 64[2, 64]");
});

test("a quantized tensor can't be changed", () => {
  expect(Object.isFrozen(w) && Object.isFrozen(w.shape)).toBe(true);
  expect(Object.isFrozen(quantize(ones([1, 64])).format)).toBe(true);
});

const functions: Readonly<Record<string, unknown>> = operations;

describe("an operation that does not support quantized tensors says so", () => {
  test.each(["add", "matmul", "exp", "sum", "transpose", "reshape", "toDType", "linear"] as const)(
    "%s rejects quantized tensors",
    async (name) => {
      const call = functions[name] as (...values: unknown[]) => unknown;
      await collectGarbage(); // garbage of other tests is collected now, not between two readings
      const bytes = liveBytes();
      let error: unknown;
      try {
        call(w, name === "matmul" || name === "linear" ? ones([256, 4]) : "float32");
      } catch (cause) {
        error = cause;
      }
      expect(error).toBeInstanceOf(OrchardError);
      expect(String(error)).toContain("got a quantized q4_0[64, 256] (dequantize() converts it to float32)");
      expect(liveBytes()).toBe(bytes);
    },
  );

  test("an operation rejects a quantized tensor as a second operand", () => {
    expect(() => matmul(ones([4, 64]), w as unknown as orchard.Tensor)).toThrow("got a quantized q4_0[64, 256]");
  });

  test("an operation rejects a quantized tensor as a number", () => {
    expect(() => Number(w)).toThrow(ArgumentError);
    expect(() => +(w as unknown as number)).toThrow("expected a number, got a quantized");
  });
});

test("the parts of a quantized tensor move to the backend that uses them, and back", () => {
  const x = Float32Array.from({ length: 512 }, (_, at) => Math.cos(at));
  const made = withBackend("reference", () => quantizeGgml(orchard.fromArray(x).reshape([2, 256]), "q5_1"));
  const expected = withBackend("reference", () => dequantize(made).toArray());
  const backends = (["cpu", "metal", "reference", "cpu"] as const).filter((name) => whyUnavailable(name) === undefined);
  for (const backend of backends) expect(withBackend(backend, () => dequantize(made).toArray())).toEqual(expected);
});

test("tidy ignores a quantized tensor, and dispose frees it at once", () => {
  const own = tidy(() => ({ layers: new Map([["w", quantize(ones([64, 64]))]]) })).layers.get("w")!;
  expect(dequantize(own).sum().item()).toBe(4096);
  own.dispose();
  own.dispose();
  expect(own.isDisposed).toBe(true);
  expect(String(own)).toContain("(disposed)");
  expect(() => dequantize(own)).toThrow(DisposedError);
  expect(() => dequantize(own)).toThrow("[dequantize] a quantized affine 4 bits, groups of 64[64, 64] was used after");
});

test("quantizing and unpacking leave nothing behind", async () => {
  const x = ones([256, 256]);
  await collectGarbage();
  const before = liveBytes();
  for (const dtype of ["float32", "float16"] as const) {
    using own = quantize(x, { scaleDType: dtype });
    using back = dequantize(own, { dtype });
    expect(liveBytes()).toBeGreaterThanOrEqual(before + back.size * (dtype === "float32" ? 4 : 2));
  }
  expect(liveBytes()).toBeLessThanOrEqual(before);
});

test("an object that resembles one is rejected", () => {
  const fake = Object.create(QuantizedTensor.prototype) as orchard.QuantizedTensor;
  expect(() => dequantize(fake)).toThrow(ArgumentError);
  expect(() => dequantize({ ...w } as unknown as orchard.QuantizedTensor)).toThrow(
    "expected w to be a quantized tensor",
  );
});
