/** The list of modes of bags is the same in TypeScript, C++ and Metal Shading Language. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { bagModes } from "../../../src/ops/embedding/modes.ts";

const camelCase = (name: string) =>
  name.toLowerCase().replace(/_(.)/g, (_match, letter: string) => letter.toUpperCase());

/** The names of an enumeration in a file, without a prefix; each must have the code that its place says. */
function namesIn(file: string, enumeration: RegExp, prefix = ""): string[] {
  const [, body = ""] = readFileSync(join(packageRoot, file), "utf8").match(enumeration) ?? [];
  const entries = [...body.matchAll(/(\w+)(?: = (\d+))?/g)];
  expect(entries.map(([, , code], at) => Number(code ?? at))).toEqual([...entries.keys()]);
  return entries.map(([, name = ""]) => camelCase(name.slice(prefix.length)));
}

test("modes of bags", () => {
  const native = "native/cpu/embedding/embedding.h";
  expect(namesIn(native, /enum class BagMode : int \{ (.*) \}/)).toEqual([...bagModes]);
  expect(namesIn("kernels/embedding/bags.metal", /enum BagMode \{([^}]*)\}/, "BAG_")).toEqual([...bagModes]);
});
