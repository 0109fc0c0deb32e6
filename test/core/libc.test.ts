/** Functions of the C library, checked through a second handle of it. */
import { dlopen } from "bun:ffi";
import { afterAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import { cString, openLibc } from "../../src/core/libc.ts";
import { seed } from "../support/some.ts";

const { getenv } = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  getenv: { args: ["ptr"], returns: "cstring" },
}).symbols;
const native = (name: string): string | undefined => getenv(Buffer.from(`${name}\0`))?.toString();

const functions = {
  setenv: { args: ["ptr", "ptr", "i32"], returns: "i32" },
  unsetenv: { args: ["ptr"], returns: "i32" },
} as const;
const libc = openLibc(functions)!;

/** Texts of any characters that C strings can hold. */
const text = fc.string({ unit: "binary" }).map((value) => value.toWellFormed().replaceAll("\0", ""));
const name = text.map((value) => `ORCHARD_TEST_${value.replaceAll("=", "")}`);
const set = new Set<string>();
afterAll(() => {
  for (const own of set) libc.unsetenv(cString(own));
});

test(`drawn names and values are set, changed and removed (seed ${seed})`, () => {
  fc.assert(
    fc.property(name, fc.array(fc.oneof(text, fc.constantFrom("", "=", "a=b", "é 🍎"))), (own, values) => {
      set.add(own);
      for (const value of values) {
        expect(libc.setenv(cString(own), cString(value), 1)).toBe(0);
        expect(native(own)).toBe(value);
      }
      expect(libc.unsetenv(cString(own))).toBe(0);
      expect(native(own)).toBeUndefined();
    }),
    { seed, numRuns: 200 },
  );
});

test("an empty name and one with an equals sign are rejected, as POSIX requires", () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      expect(libc.setenv(cString(`${before}=${after}`), cString("x"), 1)).toBe(-1);
    }),
    { seed },
  );
  expect(libc.setenv(cString(""), cString("x"), 1)).toBe(-1);
});

test("library names are tried in order; the result is undefined if none is found", () => {
  const real = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6";
  expect(openLibc(functions, ["libnothing.so.0"])).toBeUndefined();
  expect(openLibc(functions, [])).toBeUndefined();
  expect(openLibc(functions, ["libnothing.so.0", real])?.unsetenv(cString("ORCHARD_TEST_"))).toBe(0);
  expect(openLibc({ orchard_has_no_such_function: { args: [], returns: "i32" } })).toBeUndefined();
});
