/** The list of losses is the same in TypeScript, C++ and Metal Shading Language. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { lossNames } from "../../../src/ops/loss/names.ts";

const camelCase = (name: string) =>
  name.toLowerCase().replace(/_(.)/g, (_match, letter: string) => letter.toUpperCase());

/** The names of an enumeration in a file, without a prefix; each must have the code that its place says. */
function namesIn(file: string, enumeration: RegExp, prefix = ""): string[] {
  const [, body = ""] = readFileSync(join(packageRoot, file), "utf8").match(enumeration) ?? [];
  const entries = [...body.matchAll(/(\w+)(?: = (\d+))?/g)];
  expect(entries.map(([, , code], at) => Number(code ?? at))).toEqual([...entries.keys()]);
  return entries.map(([, name = ""]) => camelCase(name.slice(prefix.length)));
}

test("losses", () => {
  expect(namesIn("native/cpu/loss/loss.h", /enum class Loss : int \{ (.*) \}/)).toEqual([...lossNames]);
  expect(namesIn("kernels/loss/loss.metal", /enum LossCode \{([^}]*)\}/)).toEqual([...lossNames]);
});
