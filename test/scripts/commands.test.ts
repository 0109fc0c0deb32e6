/** The package's scripts on a machine where Metal is left out on purpose, and on one where Swift can't be had. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installDependencies } from "../../scripts/dependencies.ts";
import { packageRoot } from "../../src/debug/paths.ts";

const empty = mkdtempSync(join(tmpdir(), "orchard-commands-"));

function script(name: string, environment: Record<string, string>, ...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, `scripts/${name}.ts`, ...words], {
    cwd: packageRoot,
    env: { PATH: process.env["PATH"] ?? "", HOME: empty, ...environment },
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

await installDependencies();

describe("ORCHARD_SKIP_METAL=1", () => {
  const skip = { ORCHARD_SKIP_METAL: "1" };

  test.each(["setup", "build"])("%s does nothing, and says what it left out", (name) => {
    const { out, exitCode } = script(name, skip);
    expect([out, exitCode]).toEqual(["ORCHARD_SKIP_METAL=1: Swift, and with it the metal backend, is left out.\n", 0]);
  });

  test("check does the rest, and names each part that it left out", () => {
    const { out, exitCode } = script("check", skip);
    expect([out.trim().split("\n").at(-1), exitCode]).toEqual(["2 passed, 0 failed", 0]);
    for (const part of ["Swift without warnings", "Kernels, strictly typed", "Tests of test/backend/metal/"])
      expect(out).toMatch(new RegExp(`^ +${part}.* left out: ORCHARD_SKIP_METAL=1$`, "m"));
  }, 300_000);

  test("test runs no test that loads the dylib", () => {
    const files = ["test/scripts/counts.test.ts", "test/backend/metal/readme.test.ts"];
    const { out, err, exitCode } = script("test", { ...skip, ORCHARD_LIBRARY: join(empty, "missing.so") }, ...files);
    expect(err).not.toContain("readme.test.ts");
    expect([out.trim().split("\n").at(-1), exitCode]).toEqual([
      expect.stringMatching(/^[1-9]\d* passed, 0 failed$/),
      0,
    ]);
  }, 60_000);

  test("demo can't do without, and says so in one line", () => {
    const { err, exitCode } = script("demo", skip);
    expect([err, exitCode]).toEqual([
      "examples/demo.ts runs Metal kernels, and ORCHARD_SKIP_METAL=1 leaves Metal out. Unset it.\n",
      1,
    ]);
  });

  test("anything but 0 and 1 is a mistake", () => {
    const { err, exitCode } = script("setup", { ORCHARD_SKIP_METAL: "yes" });
    expect(err).toContain('ORCHARD_SKIP_METAL is "yes"; it takes 0 or 1.');
    expect(exitCode).toBe(1);
  });
});

describe("where Swift can't be had", () => {
  test.each(["setup", "build", "check", "test", "demo", "bench"])("%s fails with one clear line", (name) => {
    const { err, exitCode } = script(name, { PATH: empty, XDG_CACHE_HOME: empty });
    expect(err).toMatch(process.platform === "darwin" ? /xcode-select --install.*\n$/ : /ORCHARD_SKIP_METAL=1.*\n$/);
    expect([err.trimEnd().split("\n").length, exitCode]).toEqual([1, 1]);
  });
});

test("bench names the benchmarks that there are, where it is asked for another", () => {
  const { err, exitCode } = script("bench", {}, "nothing");
  expect([err, exitCode]).toEqual(['There is no benchmark "nothing"; there are: checker, dispatch.\n', 1]);
});
