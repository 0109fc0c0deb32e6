/**
 * Swift programs and packages as people write them, on the modules that replace Apple's. The package also builds on a
 * Mac unchanged: several targets, resources, `.metal` files with a header, XCTest.
 */
import { expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { moduleEnvironment } from "../../../src/cli/swift_module.ts";
import { namesProgram } from "../../../src/cli/swift_package.ts";
import { compileProgram } from "../../../src/cli/swift_program.ts";
import { cachedToolchain, cachedToolchains, findSwift } from "../../../src/cli/toolchain.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { withVariables } from "../../support/environment.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const command = join(packageRoot, "src", "cli", "orchard.ts");
const { path: folder } = testFolder("swift");

const hasSwift = process.env["ORCHARD_SKIP_METAL"] !== "1" && findSwift() !== undefined;

/** `orchard swift …` in a folder. */
function swift(cwd: string, ...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, command, "swift", ...words], { cwd });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

test.skipIf(!hasSwift)("a package is built, tested and run, with its manifest unchanged", () => {
  const copy = join(folder, "package");
  cpSync(join(import.meta.dir, "package"), copy, { recursive: true });
  const tested = swift(copy, "test");
  expect(tested.out + tested.err).toMatch(/Executed 4 tests, with 0 failures/);
  expect(tested.exitCode).toBe(0);
  // 2.5, the factor in a resource, times 99
  const ran = swift(copy, "run", "--", "one", "two");
  expect([ran.out, ran.exitCode]).toEqual(["last 247.5, arguments one two\n", 0]);
  expect(swift(copy, "run", "saxpy", "three").out).toBe("last 247.5, arguments three\n");
  const built = swift(copy, "build", "--product", "saxpy");
  expect([built.exitCode, existsSync(join(copy, ".build", "debug", "saxpy"))]).toEqual([0, true]);
});

test.skipIf(!hasSwift)("a program of two files finds the kernel next to it, from any folder", () => {
  const programs = join(folder, "programs");
  cpSync(join(import.meta.dir, "programs"), programs, { recursive: true });
  mkdirSync(join(folder, "elsewhere"));
  const { out, err, exitCode } = swift(
    join(folder, "elsewhere"),
    "../programs/add.swift",
    "../programs/adder.swift",
    "a",
    "-b",
  );
  expect(err).toBe("[add:results] compared 1000 results\n");
  expect([out, exitCode]).toEqual(['wrong 0, turned SIMD2<Float>(-4.0, 3.0), arguments ["a", "-b"]\n', 0]);
});

test.skipIf(!hasSwift || process.platform !== "linux")("a program that races fails under the checker", async () => {
  const compiled = await compileProgram([join(import.meta.dir, "programs", "racy.swift")]);
  if ("problem" in compiled) throw new Error(compiled.problem);
  const run = (check: string | undefined, ...words: string[]) => {
    const env = { ...process.env, ...moduleEnvironment(), ORCHARD_METAL_CHECK: check };
    const { stdout, stderr, exitCode } = Bun.spawnSync([compiled.program, ...words], { env });
    return [stdout.toString(), /\[device-race\]/.test(stderr.toString()), exitCode] as const;
  };
  expect(run(undefined)).toEqual(["done\n", false, 0]);
  expect(run("report")).toEqual(["done\n", true, 0]);
  expect(run("1")).toEqual(["done\n", true, 1]);
  expect(run("1", "3")).toEqual(["done\n", true, 3]); // the program's own status is kept
  rmSync(dirname(compiled.program), { recursive: true });
});

test.skipIf(!hasSwift)("the error for a missing file names it", () => {
  expect(swift(folder, "missing.swift")).toEqual({ out: "", err: "There is no file missing.swift.\n", exitCode: 1 });
});

test.each([
  [[], false],
  [["-c", "release"], false],
  [["tool"], true],
  [["-c", "release", "tool"], true],
  [["--quiet"], false],
] as const)("the arguments %p are recognized as naming a program, or not", (words, expected) => {
  expect(namesProgram(words)).toBe(expected);
});

test("an installed toolchain's flags are found on PATH, also through a link", () => {
  const [cached] = cachedToolchains();
  if (cached === undefined) return; // this machine has its own Swift
  const links = join(folder, "bin");
  mkdirSync(links);
  for (const bin of [join(cached, "usr/libexec/swift/bin"), links]) {
    if (bin === links) symlinkSync(join(cached, "usr/libexec/swift/bin"), join(links, "swift-bin"));
    using _ = withVariables({
      PATH: `${bin === links ? join(links, "swift-bin") : bin}:${process.env["PATH"]}`,
    });
    expect(findSwift()).toMatchObject({
      origin: "cache",
      compilerFlags: cachedToolchain(cached)!.compilerFlags,
      programFlags: cachedToolchain(cached)!.programFlags,
    });
  }
});
