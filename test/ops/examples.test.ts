/** The examples in the comments of operations give the stated results: `call; // dtype [values]`. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { packageRoot } from "../../src/core/paths.ts";
import * as library from "../../src/index.ts";

interface DocumentedCall {
  /** Declarations for an example. */
  readonly setup: string;
  readonly call: string;
  readonly dtype: string;
  readonly values: string;
}

const dtypes = "float64|float32|float16|bfloat16|int64|int32|uint32|int8|uint8|bool";
const form = new RegExp(
  `((?:^ \\* const .*;(?: //.*)?\n)*)^ \\* ([\\w.]+\\(.*\\)); // (${dtypes}) (-?[\\d.]+|true|false|\\[.*\\])$`,
  "gm",
);

const glob = new Bun.Glob("src/{fft,linalg,ops,signal}/**/*.ts");
const sources = [...glob.scanSync({ cwd: packageRoot, absolute: true })].sort();
const calls = sources.flatMap((path): DocumentedCall[] =>
  [...readFileSync(path, "utf8").matchAll(form)].map(([, setup = "", call = "", dtype = "", values = ""]) => ({
    setup: setup.replaceAll(/^ \* /gm, ""),
    call,
    dtype,
    values,
  })),
);

/** Evaluates a call as a program would write it. `var` is left out, because it is a keyword. */
function evaluate(text: string, setup = ""): unknown {
  const names = Object.keys(library).filter((name) => name !== "var");
  const given = names.map((name) => (library as Readonly<Record<string, unknown>>)[name]);
  return new globalThis.Function(...names, `${setup} return ${text}`)(...given);
}

const numbersOf = (value: unknown): number[] => [value].flat(8).map(Number);

test("more than 40 examples are found", () => expect(calls.length).toBeGreaterThan(40));

test.each(calls)("the example is right: $call", ({ setup, call, dtype, values }) => {
  const result = evaluate(call, setup) as library.Tensor;
  const [got, wanted] = [numbersOf(result.toArray()), numbersOf(evaluate(values))];
  expect([result.dtype as string, got.length]).toEqual([dtype, wanted.length]);
  // Examples have four decimals or more.
  const wrong = wanted.filter((value, index) => !(Math.abs(got[index] - value) <= 6e-5 * Math.max(1, Math.abs(value))));
  expect(wrong).toEqual([]);
});
