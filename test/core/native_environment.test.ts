/** Assignments to `process.env` reach the dylibs, which read the C library's environment. */
import { dlopen } from "bun:ffi";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { suiteCacheLimit } from "../../scripts/suite/report.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { environmentFlag, softwareDevice } from "../../src/core/environment.ts";
import { exportEnvironment } from "../../src/core/native_environment.ts";
import { seed } from "../support/some.ts";

const { getenv } = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  getenv: { args: ["ptr"], returns: "cstring" },
}).symbols;
const native = (name: string): string | undefined => getenv(Buffer.from(`${name}\0`))?.toString();

/** Possible values of a variable: any text that C strings can hold, or nothing. */
const value = fc.oneof(
  fc.string({ unit: "binary" }).map((text) => text.toWellFormed().replaceAll("\0", "")),
  fc.constantFrom("", "=", "a=b", "é 8", "7"),
  fc.constant(undefined),
);
/** Variables that no part of this process reads while the test runs. */
const names = Object.keys(softwareDevice).filter((name) => name.startsWith("ORCHARD_METAL_"));

test(`the C library's environment has the variables that are set, changed and removed (seed ${seed})`, () => {
  const before = Object.fromEntries(names.map((name) => [name, native(name)]));
  const change = fc.dictionary(fc.constantFrom(...names), value);
  try {
    fc.assert(
      fc.property(change, (values) => {
        exportEnvironment({ ...process.env, ...values });
        for (const [name, own] of Object.entries(values)) expect(native(name)).toBe(own);
      }),
      { seed, numRuns: 200 },
    );
  } finally {
    exportEnvironment({ ...process.env, ...before });
  }
});

test("variables that dylibs do not read are unchanged", () => {
  const before = native("LANG");
  exportEnvironment({ ...process.env, LANG: "xx" });
  expect(native("LANG")).toBe(before);
});

test.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("the software device has the suite's settings", () => {
  const context = metalContext();
  if (!context.isSoftware) return expect(process.platform).toBe("darwin");
  expect(context.report().settings).toMatchObject({
    poison: "1",
    timeout_ms: 600_000,
    compile_timeout_ms: 600_000,
    cache_limit: Number(process.env["ORCHARD_METAL_CACHE_LIMIT"] ?? suiteCacheLimit),
  });
});
