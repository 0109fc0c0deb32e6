/** The examples in the comments of distributions give the stated results: `expression; // dtype values`. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { packageRoot } from "../../src/core/paths.ts";
import * as library from "../../src/index.ts";

const form = /((?:^ \* const [\s\S]*?;\n)?)^ \* ([\w.]+[^;\n]*\)?[^;\n]*); \/\/ (float32) (-?[\d.]+|\[.*\])$/gm;
const sources = [...new Bun.Glob("src/distributions/*.ts").scanSync({ cwd: packageRoot, absolute: true })].sort();
const examples = sources.flatMap((path) =>
  [...readFileSync(path, "utf8").matchAll(form)].map(([, setup = "", text = "", , values = ""]) => ({
    setup: setup.replaceAll(/^ \* /gm, ""),
    text,
    values,
  })),
);

test("more than 25 examples are found", () => expect(examples.length).toBeGreaterThan(25));

test.each(examples)("the example $text gives $values", ({ setup, text, values }) => {
  const names = Object.keys(library).filter((name) => name !== "var");
  const given = names.map((name) => (library as Readonly<Record<string, unknown>>)[name]);
  const found = new globalThis.Function(...names, `{ ${setup} return ${text} }`)(...given) as library.Tensor;
  const numbers = [found.toArray()].flat(8).map(Number);
  const expected = [JSON.parse(values) as number | number[]].flat(8);
  expect(found.dtype).toBe("float32");
  expect(numbers.length).toBe(expected.length);
  for (const [at, value] of expected.entries()) expect(Math.abs(numbers[at] - value)).toBeLessThan(2e-6);
});
