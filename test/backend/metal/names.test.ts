/**
 * Names that kernels know by number: each has a formula in the kernels, and a kernel that lacks one does not compile.
 * Each run removes a few drawn formulas; `ORCHARD_TEST_ALL=1` removes every one in turn.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Enumeration, enumerations } from "../../../src/backend/enumeration.ts";
import { kernelHeaders } from "../../../src/backend/metal/launch.ts";
import { createLibrary } from "../../../src/backend/metal/pipeline.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { KernelCompileError, metalContext } from "../../../src/index.ts";
import { seed, someOf } from "../../support/some.ts";

const folder = join(packageRoot, "kernels");
const texts: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(metal|h)$/.test(name))
    .sort()
    .map((name) => [name, readFileSync(join(folder, name), "utf8")]),
);
const files = Object.entries(texts);

const constantOf = (type: string, name: string): string =>
  `${type}_${name}`.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toUpperCase();

const included = enumerations().filter(({ header }) => files.some(([, text]) => text.includes(`"${header.name}"`)));
/** Bits of a function constant: kernels ask for each with `has`. */
const isOptions = ({ type }: Enumeration): boolean => type.endsWith("Option");

/** Groups with a separate kernel, by its host name. Its text contains no other group's names. */
const ownKernels: Readonly<Record<string, string>> = { TERNARY_CHOICES: "where_" };

/** The file with a struct's formulas: a kernel, or a table of `formulas/` that it includes. */
interface Holder {
  readonly file: string;
  /** The kernel's macro for the rows of a table: `LOSS` and `LOSS_` if `LOSS(HINGE, …)` is `Formula<LOSS_HINGE>`. */
  readonly rows?: { readonly macro: string; readonly prefix: string };
}

/** A formula: the struct of a name, or the row that defines it. */
interface Formula extends Holder {
  readonly struct: string;
  readonly constant: string;
}

/**
 * The formulas that a file's switches require: each struct that a switch names needs one for each name of its group.
 */
function formulasIn(file: string, text: string): Formula[] {
  return included.flatMap(({ type, names, groups }) =>
    Object.entries({ names, ...groups }).flatMap(([group, members]) => {
      const uses = text.matchAll(new RegExp(`${constantOf(type, group)}\\(ORCHARD_CASE, (?:orchard::)?(\\w+),`, "g"));
      const structs = new Set([...uses].map(([, struct]) => struct));
      const constants = members.map((name) => constantOf(type, name));
      return [...structs].flatMap((struct) =>
        constants.map((constant) => ({ ...holderOf(file, struct), struct, constant })),
      );
    }),
  );
}

function holderOf(file: string, struct: string): Holder {
  const tables = [...texts[file].matchAll(/^#include "(formulas\/\w+\.h)"/gm)].map(([, name]) => name);
  const [, macro, prefix] =
    new RegExp(`^#define (\\w+)\\(NAME,.*\\n.*struct ${struct}<(\\w+)##NAME>`, "m").exec(texts[file]) ?? [];
  const table = tables.find((name) => macro !== undefined && new RegExp(`^${macro}\\(`, "m").test(texts[name]));
  if (table !== undefined) return { file: table, rows: { macro, prefix } };
  return { file: [file, ...tables].find((name) => texts[name].includes(`> struct ${struct};`)) ?? file };
}

const formulas = files.flatMap(([file, text]) => formulasIn(file, text));

/** The start of a formula's text: a struct, or a row of a macro that defines one. */
function beginOf({ file, struct, constant, rows }: Formula): number {
  const text = texts[file];
  const macros = [...text.matchAll(/^#define (\w+)\(name(?:.*\\\n)*.*/gm)];
  const makers = macros.filter(([body]) => body.includes(`struct ${struct}<name>`)).map(([, name]) => `${name}\\(\\s*`);
  const named = [`template <> struct ${struct}<`, ...makers].map((begin) => `^${begin}${constant}\\b`).join("|");
  const row = rows ? `^${rows.macro}\\(\\s*${constant.slice(rows.prefix.length)}\\b` : named;
  const found = [...text.matchAll(new RegExp(row, "gm"))];
  if (found.length !== 1) throw new Error(`${file}: expected one ${struct} of ${constant}, got ${found.length}`);
  return found[0].index;
}

/** A file's text without a formula. */
function without(formula: Formula): string {
  const text = texts[formula.file];
  const begin = beginOf(formula);
  const isStruct = text.startsWith("template", begin);
  const end = isStruct ? text.indexOf("\n};\n", begin) + 4 : text.indexOf(")\n", begin) + 2;
  return text.slice(0, begin) + text.slice(end);
}

/** A `.metal` file that is affected by a change of a file: itself, or one that includes it. */
function kernelWith(file: string): string {
  if (file.endsWith(".metal")) return file;
  return kernelWith(files.find(([, text]) => text.includes(`#include "${file}"`))![0]);
}

function compile(file: string, changed: Readonly<Record<string, string>>): void {
  const context = metalContext();
  if (context.isSoftware) context.configure("whole", true);
  try {
    const headers = { ...kernelHeaders(), ...changed };
    const library = createLibrary(context, "names", { source: changed[file] ?? texts[file], headers, fileName: file });
    context.native.orchard_release(library);
  } finally {
    if (context.isSoftware) context.configure("whole", false);
  }
}

describe("names of operations in kernels", () => {
  test.each(included.filter(isOptions).map((own) => [own.type, own] as const))(
    "%s: a kernel uses each name",
    (type, { names }) => {
      const all = Object.values(texts).join("\n");
      expect(names.filter((name) => !all.includes(`has(${constantOf(type, name)})`))).toEqual([]);
    },
  );

  test.each(included.filter((own) => !isOptions(own)).map((own) => [own.type, own] as const))(
    "%s: each name has a formula",
    (type, { names, groups }) => {
      const others = Object.entries(groups).flatMap(([group, members]) => {
        const kernel = ownKernels[constantOf(type, group)];
        return kernel && files.some(([, text]) => text.includes(`host_name("${kernel}`)) ? members : [];
      });
      const found = new Set(formulas.map(({ constant }) => constant));
      expect(names.filter((name) => !found.has(constantOf(type, name)) && !others.includes(name))).toEqual([]);
    },
  );

  test("each switch is generated from the list, and no default of a switch has a formula", () => {
    const users = files.filter(([, text]) => text.includes("ORCHARD_CASE"));
    expect(users.length).toBeGreaterThan(10);
    const defaults = users.flatMap(([file, text]) => (text.match(/default:.*/g) ?? []).map((line) => [file, line]));
    expect(defaults).toEqual([["elementwise/unary.h", "default: return apply(operation, x);"]]);
  });

  test("each name has one formula", () => {
    expect(formulas.length).toBeGreaterThan(150);
    for (const formula of formulas) expect(without(formula)).not.toBe(texts[formula.file]);
  });
});

describe("a kernel with a missing name", () => {
  const chosen = someOf(formulas, 3);

  test.each(chosen.map((formula) => [`${formula.struct}<${formula.constant}> in ${formula.file}`, formula] as const))(
    `a program without %s does not compile (seed ${seed})`,
    (_name, formula) => {
      const removed = { [formula.file]: without(formula) };
      let message = "it compiled";
      try {
        compile(kernelWith(formula.file), removed);
      } catch (error) {
        if (!(error instanceof KernelCompileError)) throw error;
        message = error.diagnostics;
      }
      expect(message).toContain(`${formula.struct}<${formula.constant}>'`);
    },
  );

  test("a name occurs only in the list", () => {
    const { header, names } = enumerations().find(({ type }) => type === "Scan")!;
    const row = "    ROW(SCAN_CUMSUM, __VA_ARGS__)";
    const longer = header.text
      .replace("};", `    SCAN_NEW = ${names.length},\n};`)
      .replace(row, `${row} \\\n    ROW(SCAN_NEW, __VA_ARGS__)`);
    expect(() => compile("scan/scan.metal", { [header.name]: longer })).toThrow("SCAN_NEW");
    compile("scan/scan.metal", {});
  });
});
