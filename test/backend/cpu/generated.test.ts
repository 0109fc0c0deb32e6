/** The parameter blocks of the cpu dylib: all are generated, and a block with another layout does not compile. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCompiler } from "../../../scripts/cpu/compiler.ts";
import { blockOf, generatedHeaders, writeGenerated } from "../../../scripts/cpu/generated.ts";
import { cpuCalls } from "../../../src/backend/cpu/call.ts";
import { nativeTables } from "../../../src/backend/cpu/tables.ts";
import { enumerations } from "../../../src/backend/enumeration.ts";
import { run } from "../../../src/cli/run.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import "../../../src/index.ts"; // describes every call
import { testFolder } from "../../support/folder.ts";
import { seed, someOf } from "../../support/some.ts";

const folder = join(packageRoot, "native", "cpu");
const sources = [...new Bun.Glob("**/*.{h,cpp}").scanSync({ cwd: folder })].map((name) => ({
  name,
  text: readFileSync(join(folder, name), "utf8"),
}));
const calls = [...cpuCalls.values()];

describe("every block is generated", () => {
  const exported = sources.flatMap(({ text }) =>
    [...text.matchAll(/^ORCHARD_(?:ROWS_)?FUNCTION\("(\w+)", \w+, (\w+), /gm)].map(([, name, block]) => [name, block]),
  );

  test("every function of the dylib takes the block that is generated for it", () => {
    expect(exported.sort()).toEqual(calls.map((call) => [call.name, blockOf(call)]).sort());
  });

  test("no source declares a struct, an alias or an enumeration that is generated", () => {
    const declaration =
      /^(?:template <[^>]*>\s*)?(?:struct|class|using|enum(?: class)?|ORCHARD_NAMES\()\s*(\w+)\b(?!;)/gm;
    const namesIn = (text: string) => [...text.matchAll(declaration)].map(([, name]) => name);
    const generated = new Set(generatedHeaders().flatMap(({ text }) => namesIn(text)));
    expect(calls.map(blockOf).filter((name) => !generated.has(name))).toEqual([]);
    expect(generated.size).toBeGreaterThan(calls.length);
    const found = sources.flatMap(({ name, text }) =>
      namesIn(text)
        .filter((own) => generated.has(own))
        .map((own) => `${own} in ${name}`),
    );
    expect(found).toEqual([]);
  });
});

describe("generated blocks that the compiler lays out differently", () => {
  const { file, path: root } = testFolder("blocks");
  /** The first two fields of a block. */
  const fields = /(?<=^struct .*\{\n)( .*\n)( .*\n)/m;
  const headers = generatedHeaders().filter(({ name, text }) => name.endsWith("_block.h") && fields.test(text));
  const chosen = someOf(headers, 3).map(({ name, text }) => [name, text] as const);

  test.each(chosen)(`%s with an added field or another order does not compile (seed ${seed})`, async (name, text) => {
    mkdirSync(file("native"), { recursive: true });
    symlinkIfMissing(folder, file("native/cpu"));
    writeGenerated(root);
    const path = file(`native/.build/${name}`);
    expect(await outputOf(path, text)).toEqual("");
    for (const other of ["  Whole added;\n$1$2", "$2$1"])
      expect(await outputOf(path, text.replace(fields, other))).toContain("static assertion failed");
  });

  async function outputOf(path: string, text: string): Promise<string> {
    writeFileSync(path, text);
    const { command } = await findCompiler();
    const flags = ["-std=c++17", "-fsyntax-only", "-DORCHARD_ISA=baseline", "-x", "c++"];
    return (await run([...command, ...flags, path])).output.replace(/^.*#pragma once in main file(?:.*\n){0,3}/gm, "");
  }
});

function symlinkIfMissing(target: string, path: string): void {
  try {
    symlinkSync(target, path);
  } catch {}
}

describe("the tables of the dylib list its functions", () => {
  test("the tables list exactly the functions that are called", () => {
    expect(Object.keys(nativeTables().functions).sort()).toEqual([...cpuCalls.keys()].sort());
  });

  test("contain the names of every enumeration, in any order", () => {
    const { names } = nativeTables();
    const own = enumerations().filter(({ type }) => type in names);
    expect(own.length).toBeGreaterThan(2);
    for (const { type, names: expected } of own)
      expect([type, Object.keys(names[type]).sort()]).toEqual([type, [...expected].sort()]);
    const unknown = Object.keys(names).filter((type) => type !== "DType" && !own.some((known) => known.type === type));
    expect(unknown).toEqual([]);
  });
});
