/**
 * If the code does not know a name of a C++ enumeration, the compiler rejects it. Each run tries two enumerations; with
 * `ORCHARD_TEST_ALL=1` it tries all.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findCompiler } from "../../../scripts/cpu/compiler.ts";
import { generatedHeaders, headerOf, namedEnumerations, writeGenerated } from "../../../scripts/cpu/generated.ts";
import { flagsOf, setsOf } from "../../../scripts/cpu/objects.ts";
import { run } from "../../../src/cli/run.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { testFolder } from "../../support/folder.ts";
import { seed, someOf } from "../../support/some.ts";

const sources = join(packageRoot, "native", "cpu");
const headers = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter(
  (name) => name.endsWith(".h") && name !== "names.h",
);
/** The list, as a generated header declares it. */
const listOf = (type: string) => new RegExp(`ORCHARD_NAMES\\(${type}, ([^)]*)\\)`);

/** The headers that include the generated header of an enumeration, or else of a struct with a field of it. */
function includersOf(type: string): string[] {
  const structs = generatedHeaders().filter(({ text }) => text.includes(` Name<${type}> `));
  const [direct, others] = [[headerOf(type)], structs.map(({ name }) => name)].map((all) =>
    headers.filter((header) => {
      const text = readFileSync(join(sources, header), "utf8");
      return all.some((name) => text.includes(`.build/${name}"`));
    }),
  );
  return direct.length > 0 ? direct : others;
}

/** Enumerations, the header that each is in, and the file whose code knows its names. */
const declared = namedEnumerations()
  .filter(({ type }) => !["Unary", "Binary", "Ternary"].includes(type))
  .map(({ type }) => ({ type, header: headerOf(type), source: codeOf(includersOf(type)[0]) }));

function codeOf(header: string): string {
  const folder = dirname(header);
  const files = readdirSync(join(sources, folder)).map((name) => join(folder, name));
  const own = [".isa.cpp", ".cpp"].map((ending) => header.replace(/\.h$/, ending));
  return own.find((name) => files.includes(name)) ?? join(folder, `${folder}.isa.cpp`);
}

/** Enumerations whose names only label counters: no code distinguishes them. */
const counters = ["AttentionPass"];

const formulas = declared.filter(({ type }) => !counters.includes(type));
const chosen = someOf(formulas, 2);

test("enumerations of the C++ are found", () => {
  expect(declared.length).toBeGreaterThan(10);
});

describe("C++ that does not compile", () => {
  const { file, path: root } = testFolder("cpu-names");
  beforeAll(() => {
    for (const folder of ["native/cpu", "kernels/formulas"])
      cpSync(join(packageRoot, folder), file(folder), { recursive: true });
    writeGenerated(root);
  });

  /** Compiles a source while a file that it includes has another text. */
  async function compileWith(source: string, path: string, change: (text: string) => string) {
    const text = readFileSync(file(path), "utf8");
    expect(change(text)).not.toBe(text);
    writeFileSync(file(path), change(text));
    const result = await compile(source);
    writeFileSync(file(path), text);
    return result;
  }

  async function compile(source: string) {
    const compiler = await findCompiler();
    const flags = flagsOf(compiler, setsOf(compiler)[0], ["-fsyntax-only"]);
    return await run([...compiler.command, ...flags, join(file("native/cpu"), source)]);
  }

  test.each(chosen.map((own) => [own.type, own] as const))(
    `C++ with a new name of %s does not compile (seed ${seed})`,
    async (type, { header, source }) => {
      const { status, output } = await compileWith(source, `native/.build/${header}`, (text) =>
        text.replace(listOf(type), (_all, names) => `ORCHARD_NAMES(${type}, newest, ${names})`),
      );
      expect(status).not.toBe(0);
      expect(output).toMatch(/newest|static assertion/);
    },
  );

  test.each(["unary", "binary", "ternary"])("C++ without a formula in %s does not compile", async (family) => {
    const rows = readFileSync(file(`kernels/formulas/${family}.h`), "utf8").match(/^(?:OF_\w+|TEST)\(.*\)$/gm)!;
    const row = someOf(rows, 1)[0];
    const { status, output } = await compileWith(
      `elementwise/${family}.isa.cpp`,
      `kernels/formulas/${family}.h`,
      (text) => text.replace(`${row}\n`, ""),
    );
    expect(status).not.toBe(0);
    expect(output).toMatch(/incomplete type|implicit instantiation/);
  });
});
