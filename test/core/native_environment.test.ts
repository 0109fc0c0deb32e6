/** Assignments to `process.env` reach the dylibs, which read the C library's environment. */
import { dlopen } from "bun:ffi";
import { expect, test } from "bun:test";
import { suiteCacheLimit } from "../../scripts/suite/report.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { exportEnvironment } from "../../src/core/native_environment.ts";

const { getenv } = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  getenv: { args: ["ptr"], returns: "cstring" },
}).symbols;
const native = (name: string): string | undefined => getenv(Buffer.from(`${name}\0`))?.toString();

test("the C library's environment gets what is set, changed and removed", () => {
  const before = native("ORCHARD_METAL_SEED");
  try {
    for (const value of ["7", "é 8", undefined, ""]) {
      exportEnvironment({ ...process.env, ORCHARD_METAL_SEED: value });
      expect(native("ORCHARD_METAL_SEED")).toBe(value);
    }
  } finally {
    exportEnvironment({ ...process.env, ORCHARD_METAL_SEED: before });
  }
});

test("variables that dylibs do not read stay as they are", () => {
  const before = native("LANG");
  exportEnvironment({ ...process.env, LANG: "xx" });
  expect(native("LANG")).toBe(before);
});

test.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("the suite's settings are the software device's", () => {
  const context = metalContext();
  if (!context.isSoftware) return expect(process.platform).toBe("darwin");
  expect(context.report().settings).toMatchObject({
    poison: "1",
    timeout_ms: 600_000,
    compile_timeout_ms: 600_000,
    cache_limit: Number(process.env["ORCHARD_METAL_CACHE_LIMIT"] ?? suiteCacheLimit),
  });
});
