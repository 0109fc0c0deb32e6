/**
 * The package's scripts on a machine where Metal is skipped on purpose, and on a machine where Swift can't be
 * installed.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import { installDependencies } from "../../scripts/dependencies.ts";
import { buildFolder, cpuLibraryName, packageRoot, platform } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";
import { isExhaustive } from "../support/repeats.ts";
import { within } from "../support/wait.ts";

const { path: empty } = testFolder("commands");

/**
 * Runs a script with an empty cache folder. Nothing is downloaded: `ORCHARD_BLAS` is set to none. The report of a
 * surrounding test run is not touched.
 */
function script(name: string, environment: Record<string, string>, ...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "scripts/launch.ts", name, ...words], {
    cwd: packageRoot,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: empty,
      ORCHARD_BLAS: "none",
      ORCHARD_REPORT: join(empty, "report"),
      ...environment,
    },
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

await installDependencies();

describe("ORCHARD_SKIP_METAL=1 leaves the dylib out", () => {
  const skip = { ORCHARD_SKIP_METAL: "1" };

  const leftOut = "ORCHARD_SKIP_METAL=1: Swift is left out, and with it the metal backend.\n";

  test("setup has nothing to do, and says what it left out", () => {
    const { out, exitCode } = script("setup", skip);
    expect([out, exitCode]).toEqual([leftOut, 0]);
  });

  test("build makes the cpu backend, and says what it left out", () => {
    const { out, exitCode } = script("build", skip);
    const { size } = Bun.file(join(buildFolder, cpuLibraryName));
    const made = `build/${platform}/${cpuLibraryName}: ${(size / 1e6).toFixed(1)} MB\n`;
    expect([out, exitCode]).toEqual([leftOut + made, 0]);
  });

  const metalParts = [
    "Format of Swift",
    "The metal backend, built",
    "Swift without warnings",
    "Kernels, strictly typed",
    "Tests of test/backend/metal/",
  ];

  // Types, lint, formats and packages have just been checked in this run, so a usual run skips them here.
  test("check does the rest, and names each part that it left out", () => {
    const usual = ["layers", "lines", "swift", "kernels", "backend"];
    const rest = {
      "Layers of src": 1,
      "Length of lines": 1,
      "The cpu backend, built": 1,
      ...(isExhaustive
        ? { Types: 3, "Format and lint": 1, "Format of C++ and MSL": 1, Precedents: 1, Packages: 4 }
        : {}),
    };
    const { HOME = empty, XDG_CACHE_HOME = join(HOME, ".cache") } = process.env; // uses the user's caches
    const { out, exitCode } = script("check", { ...skip, HOME, XDG_CACHE_HOME }, ...(isExhaustive ? [] : usual));
    expect([out.trim().split("\n").at(-1), exitCode]).toEqual([
      isExhaustive ? "13 passed, 0 failed" : "3 passed, 0 failed",
      0,
    ]);
    const rows = out.split("\n").filter((line) => /^ {2}\S.*(passed|left out)/.test(line));
    for (const [part, passed] of Object.entries(rest))
      expect(rows).toContainEqual(
        expect.stringMatching(new RegExp(`^ +${RegExp.escape(part)} +${passed} passed, 0 failed`)),
      );
    for (const part of metalParts)
      expect(rows).toContainEqual(expect.stringMatching(new RegExp(`^ +${part}.* left out: ORCHARD_SKIP_METAL=1$`)));
    expect(rows.length).toBe(Object.keys(rest).length + metalParts.length);
  });

  test("check lists its checks if an argument matches none", () => {
    const { err, exitCode } = script("check", skip, "layers", "spelling");
    expect([err, exitCode]).toEqual([
      'check: no check has "spelling" in its name; the checks are: Types; Format and lint; Layers of src; ' +
        "Format of C++ and MSL; Format of Swift; Length of lines; Precedents; The cpu backend, built; " +
        "The metal backend, built; Swift without warnings; Kernels, strictly typed; Packages.\n",
      1,
    ]);
  });

  test("without a dylib, `bun run test` skips tests that load it", () => {
    const files = ["test/scripts/counts.test.ts", "test/backend/metal/readme.test.ts"];
    const { out, err, exitCode } = script("test", { ...skip, ORCHARD_LIBRARY: join(empty, "missing.so") }, ...files);
    expect(err).not.toContain("readme.test.ts");
    expect([out.trim().split("\n").at(-1), exitCode]).toEqual([
      expect.stringMatching(/^[1-9]\d* passed, 0 failed$/),
      0,
    ]);
  });

  test("bench leaves out Metal's benchmarks, and says so", () => {
    const { out, exitCode } = script("bench", skip, "checker", "dispatch");
    const names = out.split("\n").filter((line) => line.startsWith("bench/"));
    expect(names).toEqual([
      "bench/checker.ts is left out: ORCHARD_SKIP_METAL=1",
      "bench/dispatch.ts is left out: ORCHARD_SKIP_METAL=1",
    ]);
    expect(exitCode).toBe(0);
  });

  test("any value but 0 and 1 is an error", () => {
    const { err, exitCode } = script("setup", { ORCHARD_SKIP_METAL: "yes" });
    expect(err).toContain('expected ORCHARD_SKIP_METAL to be 0 or 1, got "yes"');
    expect(exitCode).toBe(1);
  });
});

describe("nothing is built for", () => {
  /** A machine on which nothing can be built: no compiler, no Swift, no network, and the dylib is elsewhere. */
  const nothing = { PATH: empty, XDG_CACHE_HOME: empty, ORCHARD_BLAS: "" };

  test.each(["train", "generate", "demo"])("%s --help builds nothing, and shows orchard's help", (name) => {
    const { out, err, exitCode } = script(name, nothing, "--help");
    expect([err, exitCode]).toEqual(["", 0]);
    expect(out).toStartWith(`Usage: orchard ${name === "demo" ? "train" : name} `);
  });

  test.each([
    "setup",
    "build",
    "check",
    "check:quick",
    "check:sanitize",
    "test",
    "bench",
    "format",
    "docs",
    "fixtures",
    "precedent",
    "verify:apple",
  ])("%s --help builds nothing, and prints one line", (name) => {
    const { out, err, exitCode } = script(name, nothing, "--help");
    expect([out.trimEnd().split("\n").length, err, exitCode]).toEqual([1, "", 0]);
    expect(out).toStartWith(`bun run ${name} `);
  });

  test("an invalid argument of train builds nothing", () => {
    const { out, err, exitCode } = script("train", nothing, "--stepz", "5");
    const lines = [
      "error: unknown option '--stepz'",
      "(Did you mean --steps?)",
      "`bun run train --help` shows the usage.",
    ];
    expect([out, err, exitCode]).toEqual(["", `${lines.join("\n")}\n`, 1]);
  });

  test.each([[[]], [["ops", "matmul"]]])("options of bench after the names %j build nothing", (names) => {
    const { err, exitCode } = script("bench", nothing, ...names, "--threads", "2");
    expect([err, exitCode]).toEqual([
      expect.stringContaining(`Expected the name of one benchmark before --threads, got ${names.length} names.`),
      1,
    ]);
  });
});

describe("if Swift can't be installed", () => {
  test.each(["setup", "build", "check", "test", "demo", "bench"])("%s fails with one clear line", (name) => {
    const { err, exitCode } = script(name, { PATH: empty, XDG_CACHE_HOME: empty, ORCHARD_BLAS: "" });
    expect(err).toMatch(process.platform === "darwin" ? /xcode-select --install.*\n$/ : /ORCHARD_SKIP_METAL=1.*\n$/);
    expect([err.trimEnd().split("\n").length, exitCode]).toEqual([1, 1]);
  });
});

test("the error for an unknown command lists the commands", () => {
  const { err, exitCode } = script("nothing", {});
  const known =
    "bench, build, check, check:quick, check:sanitize, clean, demo, docs, fixtures, format, generate, mutate, " +
    "precedent, release, setup, test, test:arm64, test:musl, train, verify:apple";
  expect([err, exitCode]).toEqual([`Unknown command "nothing"; the commands are: ${known}.\n`, 1]);
});

test("every launched script of package.json is a command", () => {
  const launched = Object.values(packageFile.scripts).filter((line) => line.startsWith("bun scripts/"));
  const { err } = script("", {});
  for (const line of launched) expect(err).toContain(line.replace("bun scripts/launch.ts ", ""));
  expect(launched).toHaveLength(20);
});

test("the error for an unknown benchmark lists the benchmarks", () => {
  const programs = readdirSync(join(packageRoot, "bench")).filter((name) => name !== "support");
  const known = programs.map((name) => name.replace(/\.ts$/, "")).sort();
  expect(known).toContain("checker");
  const { err, exitCode } = script("bench", {}, "nothing");
  expect([err, exitCode]).toEqual([`Unknown benchmark "nothing"; the benchmarks are: ${known.join(", ")}.\n`, 1]);
});

describe("unsupported features of backends are listed", () => {
  const report = join(empty, "report", "gaps.txt");

  test("unsupported features are listed with their reasons at the end of a run, before the counts", () => {
    mkdirSync(join(empty, "report"), { recursive: true });
    writeFileSync(report, "old float32 on cpu: of an earlier run\n");
    const { out, exitCode } = script("test", {}, "./test/support/gaps.ts");
    expect(out).toEndWith(
      "\nWhat backends lack\n  metal: Metal has no float64 (2)\n    erf float64, exp float64\n\n1 passed, 0 failed\n",
    );
    expect(exitCode).toBe(0);
    expect(readFileSync(report, "utf8").split("\n")).toHaveLength(3);
  });

  test("unsupported features are not mentioned if there are none", () => {
    const { out } = script("test", {}, "test/scripts/counts.test.ts");
    expect(out).not.toContain("What backends lack");
    expect(existsSync(report)).toBe(false);
  });
});

test("a build in a terminal without columns, as in some containers, prints its steps as lines, and ends", async () => {
  let shown = "";
  const data = (_: unknown, bytes: Uint8Array) => {
    shown += Buffer.from(bytes).toString();
  };
  const program = `
    import { withSpinner } from "./scripts/progress.ts";
    await withSpinner("working", async (progress) => {
      for (const step of ["one", "two"]) {
        progress(step);
        await Bun.sleep(200);
      }
    });`;
  const command = ["sh", "-c", 'stty cols 0; exec "$0" -e "$1"', process.execPath, program];
  const child = Bun.spawn(command, { cwd: packageRoot, terminal: { data } });
  try {
    expect(await within("the end of the build", child.exited)).toBe(0);
  } finally {
    child.kill("SIGKILL"); // a spinner without columns would clear lines forever
  }
  for (const text of ["working", "  one", "  two"]) expect(shown).toContain(text);
});

test("failures are repeated at the end, before the counts", () => {
  const { out, exitCode } = script("test", {}, "./test/support/failing.ts");
  const why = "expect(received).toBe(expected) Expected: 1 Received: 2";
  expect(out).toEndWith(
    `\nWhat failed\n  TypeScript tests: test/support/failing.ts: two is one: ${why}\n\n1 passed, 1 failed\n`,
  );
  expect(exitCode).toBe(1);
});
