import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ABI_VERSION, declarations, Status, statisticsFields } from "../../../src/backend/cpu/abi.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { readHeader } from "../../support/header.ts";

const text = readFileSync(join(packageRoot, "native/cpu/include/orchard_cpu.h"), "utf8");
const others = ["memory", "program"].map((name) =>
  readFileSync(join(packageRoot, `native/cpu/include/orchard_cpu_${name}.h`), "utf8"),
);
const header = readHeader(text);
const functions = [header, ...others.map(readHeader)].flatMap((each) => each.functions);

/** The types for `bun:ffi`: bytes are passed as views; contexts, which native code creates, as addresses. */
const ffiTypes: Record<string, string> = { int32_t: "i32", double: "f64", void: "void", "void *": "ptr" };
const addresses = new Set(["orchard_cpu_release", "orchard_cpu_retake", "orchard_cpu_collected"]);
const ffiType = (name: string, cType: string) =>
  cType.includes("*") && !addresses.has(name) ? "buffer" : (ffiTypes[cType] ?? `unknown ${cType}`);

describe("the declarations match the headers", () => {
  test("the header and TypeScript declare the same functions", () => {
    expect(header.functions.length).toBeGreaterThan(12);
    expect(Object.keys(declarations).sort()).toEqual(functions.map(({ name }) => name).sort());
  });

  test.each(functions.map((entry) => [entry.name, entry] as const))(
    "the declarations of %s are equal",
    (name, { returns, parameters }) => {
      const declared: { args: readonly string[]; returns: string } = declarations[name as keyof typeof declarations];
      expect(declared).toEqual({
        args: parameters.map((cType) => ffiType(name, cType)),
        returns: ffiTypes[returns] ?? `unknown ${returns}`,
      });
    },
  );

  test("the header and TypeScript have the same error codes", () => {
    const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
    const codes = Object.entries(Status).map(([name, code]) => [`ORCHARD_CPU_${snake(name)}`, code]);
    const wanted = new Map(codes as [string, number][]).set("ORCHARD_CPU_STATISTICS", statisticsFields.length);
    expect(Object.fromEntries(header.constants)).toEqual(Object.fromEntries(wanted));
  });

  test("the header and TypeScript have the same version", () => {
    expect(/#define ORCHARD_CPU_ABI_VERSION (\d+)/.exec(text)?.[1]).toBe(`${ABI_VERSION}`);
  });

  test("the statistics are in the header's order", () => {
    const comment = /Writes, in this order: ([^.]*)\./.exec(text)?.[1] ?? "";
    const names = comment.replace(/\(.*?\)|\/\//g, "").match(/\w+/g);
    expect(names).toEqual([...statisticsFields]);
  });
});
