/** Tests of kernels on the software device's numeric variants, and the findings of its checker. */
import { expect, test } from "bun:test";
import { basename } from "node:path";
import { metalContext } from "../../src/backend/metal/context.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { usually } from "../support/repeats.ts";

// If tests of Metal are skipped, no test in the child has the name, and the child would fail.
const isSoftware =
  !environmentFlag("ORCHARD_SKIP_METAL") && whyUnavailable("metal") === undefined && metalContext().isSoftware;

type Settings = Readonly<Record<string, string>>;
const variants: Readonly<Record<string, Settings>> = {
  contracted: { contract: "1" },
  "denormals flushed": { denormals: "flush" },
  "fast formulas": { fast: "1", contract: "1", denormals: "flush" },
};

/** Names the variant for a child process, whose device must use it before the first kernel is compiled. */
const VARIABLE = "METAL_TEST_VARIANT";
const own = process.env[VARIABLE];
if (own) for (const [name, value] of Object.entries(variants[own])) metalContext().configure(name, value);

/**
 * Runs the file's tests of that name on each variant of the device; usually only on the variant that differs in
 * everything.
 */
export function testVariants(file: string, name: string): void {
  const all = usually(Object.keys(variants), (variant) => variant === "fast formulas");
  for (const variant of own ? [] : all)
    test.if(isSoftware)(`${variant}: ${name}`, async () => {
      const child = Bun.spawn([process.execPath, "test", file, "-t", name], {
        env: { ...process.env, [VARIABLE]: variant },
        stdout: "ignore",
        stderr: "pipe",
      });
      const output = await new Response(child.stderr).text();
      if ((await child.exited) !== 0) throw new Error(`${basename(file)}, ${variant}:\n${output}`);
      expect(output).toMatch(/^ [1-9]\d* pass$/m);
    });
}

/** Runs under the checker, and fails if it finds anything. */
export function checked<Result>(body: () => Result): Result {
  if (!isSoftware) return body();
  const context = metalContext();
  const { settings } = context.report({ clear: true });
  context.configure("check", true);
  const result = body();
  context.wait();
  context.configure("check", settings?.["check"] ?? "0");
  expect(context.report({ clear: true }).findings).toEqual([]);
  return result;
}
