/**
 * Compares every block of a cpu call that C++ declares, as TypeScript writes it, with the struct that the C++ compiler
 * lays out. Generated blocks need no test: their fields come from the description.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { blockOf, generatedCalls } from "../../../scripts/cpu/generated.ts";
import { type CpuCallDescription, cpuCalls } from "../../../src/backend/cpu/call.ts";
import { nativeTables } from "../../../src/backend/cpu/tables.ts";
import { enumerations } from "../../../src/backend/enumeration.ts";
import type { CpuField } from "../../../src/backend/fields.ts";
import { run } from "../../../src/cli/run.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import "../../../src/index.ts"; // describes every call
import { compileOnce } from "../../support/compile_once.ts";
import { testFolder } from "../../support/folder.ts";

const folder = join(packageRoot, "native", "cpu");
const headers = [...new Bun.Glob("**/*.h").scanSync({ cwd: folder })].sort();
const calls = [...cpuCalls.values()].filter(({ name }) => !generatedCalls.has(name));

const snakeCase = (name: string) => name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

/** The header that declares a call's block. */
function headerOf(call: CpuCallDescription): string | undefined {
  const declaration = new RegExp(`(?:struct|using) ${blockOf(call)}\\b`);
  return headers.find((name) => declaration.test(readFileSync(join(folder, name), "utf8")));
}

/** A field of a block, or a field inside one, under its name in C++. */
interface Member {
  readonly path: string;
  readonly field: CpuField<never>;
  /** The distance from the start of the block, in doubles. */
  readonly offset: number;
}

const membersOf = (path: string, field: CpuField<never>, offset: number): Member[] => [
  { path, field, offset },
  ...Object.entries(field.members ?? {}).flatMap(([name, own]) =>
    membersOf(`${path}.${snakeCase(name)}`, own.field, offset + own.offset),
  ),
];

const fieldsOf = ({ fields }: CpuCallDescription): Member[] =>
  fields.flatMap(({ name, field, offset }) => membersOf(snakeCase(name), field, offset));

/**
 * A program that prints the compiler's view of each field: offset, size and whether it has the type that TypeScript
 * states.
 */
function probe(): string {
  const rows = calls.flatMap((call) => {
    const block = blockOf(call);
    const fields = fieldsOf(call).map(({ path, field }) => {
      const member = `std::declval<${block} &>().${path}`;
      const type = `std::is_same_v<std::remove_reference_t<decltype((${member}))>, ${field.type}>`;
      return `print("${call.name}.${path}", offsetof(${block}, ${path}), sizeof(${member}), ${type});`;
    });
    return [`print("${call.name}", 0, sizeof(${block}), true);`, ...fields];
  });
  const includes = [...new Set(calls.map(headerOf))].filter((name) => name !== undefined);
  return `
    #include <cstddef>
    #include <cstdio>
    #include <type_traits>
    #include <utility>
    ${includes.map((name) => `#include "${join(folder, name)}"`).join("\n")}
    using namespace orchard;
    static void print(const char *name, size_t offset, size_t size, bool same) {
      std::printf("%s %zu %zu %d\\n", name, offset, size, same);
    }
    int main() { ${rows.join("\n")} }`;
}

describe("descriptions of blocks equal the structs in C++", () => {
  test.each(calls.map((call) => [call.name, call] as const))("%s has a struct in a header", (_name, call) => {
    expect([blockOf(call), headerOf(call)]).toEqual([blockOf(call), expect.any(String)]);
  });

  describe("structs laid out by the compiler", () => {
    const { file } = testFolder("blocks");
    let found: Record<string, readonly [offset: number, size: number, sameType: number]> = {};

    beforeAll(async () => {
      const [source, program] = [file("probe.cpp"), file("probe")];
      await Bun.write(source, probe());
      await compileOnce(["-std=c++17", "-Wno-invalid-offsetof", "-DORCHARD_ISA=baseline", source], program);
      const { output } = await run([program]);
      const rows = output
        .trim()
        .split("\n")
        .map((line) => line.split(" "));
      found = Object.fromEntries(
        rows.map(([name, offset, size, sameType]) => [name, [Number(offset), Number(size), Number(sameType)]]),
      );
    });

    test.each(calls.map((call) => [call.name, call] as const))(
      "the layout of %s equals its description",
      (name, call) => {
        const fields = fieldsOf(call).map(({ path, field, offset }) => [
          `${name}.${path}`,
          [offset * 8, field.length * 8, 1],
        ]);
        const expected = Object.fromEntries([...fields, [name, [0, call.length * 8, 1]]]);
        const own = Object.entries(found).filter(([key]) => key === name || key.startsWith(`${name}.`));
        expect(Object.fromEntries(own)).toEqual(expected);
      },
    );
  });
});

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
