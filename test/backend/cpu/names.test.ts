/**
 * If the code does not know a name of a C++ enumeration, the compiler rejects it. Each run tries two enumerations; with
 * `ORCHARD_TEST_ALL=1` it tries all. Elementwise operations are structs, and their names come with them.
 */
import { describe, expect, test } from "bun:test";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findCompiler } from "../../../scripts/cpu/compiler.ts";
import { flagsOf, setsOf } from "../../../scripts/cpu/objects.ts";
import { enumerations } from "../../../src/backend/enumeration.ts";
import { run } from "../../../src/cli/run.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import "../../../src/index.ts"; // defines them
import { testFolder } from "../../support/folder.ts";
import { seed, someOf } from "../../support/some.ts";

const sources = join(packageRoot, "native", "cpu");
const headers = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter(
  (name) => name.endsWith(".h") && name !== "names.h",
);
/** The list, as a header declares it. */
const listOf = (type: string) => new RegExp(`ORCHARD_NAMES\\(${type}, ([^)]*)\\)`);

/** Enumerations, the header of each, and the file whose code has to know its names. */
const declared = enumerations().flatMap(({ type }) => {
  const header = headers.find((name) => listOf(type).test(readFileSync(join(sources, name), "utf8")));
  return header === undefined ? [] : [{ type, header, source: codeOf(header) }];
});

function codeOf(header: string): string {
  const folder = dirname(header);
  const own = header.replace(/\.h$/, ".isa.cpp");
  return readdirSync(join(sources, folder)).some((name) => join(folder, name) === own)
    ? own
    : join(folder, `${folder}.isa.cpp`);
}

/** Counts what passes compute; no code depends on which one it is. */
const counters = ["AttentionPass"];

const formulas = declared.filter(({ type }) => !counters.includes(type));
const chosen = someOf(formulas, 2);

test("enumerations of the C++ are found", () => {
  expect(declared.length).toBeGreaterThan(10);
});

describe("C++ does not compile", () => {
  const { file } = testFolder("cpu-names");

  async function compile(source: string) {
    const compiler = await findCompiler();
    const flags = flagsOf(compiler, setsOf(compiler)[0]!, ["-fsyntax-only"]);
    return await run([...compiler.command, ...flags, join(file("cpu"), source)]);
  }

  test.each(chosen.map((own) => [own.type, own] as const))(
    `with a new name of %s (seed ${seed})`,
    async (type, { header, source }) => {
      cpSync(sources, file("cpu"), { recursive: true });
      const path = join(file("cpu"), header);
      writeFileSync(
        path,
        readFileSync(path, "utf8").replace(listOf(type), (_all, names) => `ORCHARD_NAMES(${type}, newest, ${names})`),
      );
      const { status, output } = await compile(source);
      expect(status).not.toBe(0);
      expect(output).toMatch(/newest|static assertion/);
    },
  );
});
