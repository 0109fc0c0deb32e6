/** The stand-in for Apple's `xcrun metal`, as build plugins run it. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { metalTool } from "../../../src/cli/metal_tools.ts";
import { pluginCompiler } from "../../../src/cli/swift_compiler.ts";
import { withVariables } from "../../support/environment.ts";
import { testFolder } from "../../support/folder.ts";

const { path: folder } = testFolder("metal tools");
const first = "Orchard: sources of a Metal library\n";

function run(...words: string[]): { status: number; err: string } {
  using _ = withVariables({ XDG_CACHE_HOME: join(folder, "cache") });
  const { exitCode, stderr } = Bun.spawnSync([metalTool(), ...words], { cwd: folder });
  return { status: exitCode, err: stderr.toString() };
}

const written = (name: string): string => readFileSync(join(folder, name), "utf8");

for (const name of ["a", "b"]) writeFileSync(join(folder, `${name}.metal`), "");
const [a, b] = [join(folder, "a.metal"), join(folder, "b.metal")];

test("metal lists its sources with absolute paths", () => {
  expect(
    run("metal", "-gline-tables-only", "-fmodules-cache-path=c", "a.metal", b, "-o", "debug.metallib").status,
  ).toBe(0);
  expect(written("debug.metallib")).toBe(`${first}${a}\n${b}\n`);
  expect(run("-sdk", "macosx", "metal", "a.metal").status).toBe(0);
  expect(written("default.metallib")).toBe(`${first}${a}\n`);
});

test("metallib and metal-ar join what metal -c wrote, with the options of each source", () => {
  run("--sdk", "macosx", "metal", "-c", "-Iinclude", "-D", "N=2", "-MF", "a.d", "a.metal");
  run("metal", "-c", "-std=metal3.0", "-target", "air64-apple-macos14", "b.metal", "-o", "out.air");
  expect(run("metal-ar", "r", "all.metalar", "a.air", "out.air").status).toBe(0);
  expect(run("-sdk", "macosx", "metallib", "all.metalar", "-o", "all.metallib").status).toBe(0);
  expect(written("all.metallib")).toBe(`${first}${a}\t-I${join(folder, "include")}\t-DN=2\n${b}\t-std=metal3.0\n`);
});

test("xcrun finds its tools, which run without it", () => {
  using _ = withVariables({ XDG_CACHE_HOME: join(folder, "cache") });
  const found = Bun.spawnSync([metalTool(), "-sdk", "macosx", "-find", "metal"]).stdout.toString().trim();
  expect(Bun.spawnSync([found, "b.metal", "-o", "found.metallib"], { cwd: folder }).exitCode).toBe(0);
  expect(written("found.metallib")).toBe(`${first}${b}\n`);
});

test("a missing source and another tool are errors", () => {
  expect(run("metal", "missing.metal")).toEqual({
    status: 1,
    err: "metal: error: no such file or directory: 'missing.metal'\n",
  });
  expect(run("actool").err).toBe("xcrun: actool is not available on Linux: there are metal, metal-ar and metallib\n");
});

test("plugins and programs that run xcrun run the stand-in", () => {
  const source = join(folder, "sources of a plugin", "plugin.swift");
  mkdirSync(join(folder, "sources of a plugin"));
  writeFileSync(source, 'let tool = "/usr/bin/xcrun"\n');
  using _ = withVariables({ XDG_CACHE_HOME: join(folder, "cache"), TMPDIR: folder });
  const { stdout } = Bun.spawnSync([pluginCompiler("/bin/cat", "/bin/cat", []), source]);
  expect(stdout.toString()).toBe(`let tool = "${metalTool()}"\n`);
});
