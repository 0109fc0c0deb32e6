/** Every operation with complex operands computes a complex result or rejects them with a typed error. */
import { expect, test } from "bun:test";
import * as orchard from "../../../src/index.ts";
import { isFloat } from "../../../src/tensor/dtype.ts";
import { calls, makeOperands, type Operands, operationNames } from "../calls.ts";

const functions = orchard as unknown as Readonly<Record<string, (...values: readonly unknown[]) => unknown>>;

/** Calls an operation whose float operands became complex. Returns undefined, or the error. */
function failureOf(name: (typeof operationNames)[number]): unknown {
  const operands = Object.entries(makeOperands(4)).map(([key, x]) => [key, isFloat(x.dtype) ? x.to("complex64") : x]);
  try {
    functions[name](...calls[name](Object.fromEntries(operands) as Operands));
    return undefined;
  } catch (error) {
    return error;
  }
}

const failures = operationNames.map((name) => [name, failureOf(name)] as const);

test("every operation on complex operands returns a result or throws a DTypeError", () => {
  const others = failures.filter(([, error]) => error !== undefined && !(error instanceof orchard.DTypeError));
  expect(others.map(([name, error]) => `${name}: ${error}`)).toEqual([]);
});

test("files of safetensors reject complex128, which the format lacks", async () => {
  const z = orchard.tensor({ re: 1, im: 2 }, { dtype: "complex128" });
  const saved = orchard.io.saveSafetensors("unwritten.safetensors", { z });
  expect(await saved.catch((error: unknown) => error)).toBeInstanceOf(orchard.DTypeError);
});

test("functions that depend on an order or on real numbers reject complex ones", () => {
  const refused = new Set(failures.flatMap(([name, error]) => (error === undefined ? [] : [name])));
  const ordered =
    "lt le gt ge max min amax argmin sort topk cummax median maximum fmax clamp floor round trunc signbit relu gelu " +
    "erf lgamma atan2 hypot nansum isposinf isneginf scatterReduce indexReduce histc searchsorted";
  expect(ordered.split(" ").filter((name) => !refused.has(name as never))).toEqual([]);
});
