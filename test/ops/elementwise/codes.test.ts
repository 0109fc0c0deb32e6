/** The three lists of elementwise operations are one. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { binaryOperations, ternaryOperations, unaryOperations } from "../../../src/ops/elementwise/primitive.ts";

const metal = readFileSync(join(packageRoot, "kernels/elementwise/codes.h"), "utf8");
const native = readFileSync(join(packageRoot, "native/cpu/elementwise/operations.h"), "utf8");

const camelCase = (name: string) =>
  name.toLowerCase().replace(/_(.)/g, (_match, letter: string) => letter.toUpperCase());

test.each([
  ["UNARY", unaryOperations.names],
  ["BINARY", binaryOperations.names],
  ["TERNARY", ternaryOperations.names],
] as const)("%s", (kind, names) => {
  const ofMetal = [...metal.matchAll(new RegExp(` ${kind}_(\\w+) = (\\d+),`, "g"))];
  expect(ofMetal.map(([, name]) => camelCase(name!))).toEqual([...names]);
  expect(ofMetal.map(([, , code]) => Number(code))).toEqual(names.map((_, index) => index));
  const [, body = ""] = native.match(new RegExp(`ORCHARD_${kind}\\(use\\)((?:.*\\\\\\n)*.*)`)) ?? [];
  expect([...body.matchAll(/use\((\w+)\)/g)].map(([, name]) => name)).toEqual([...names]);
});
