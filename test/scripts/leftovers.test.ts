/** A test file that leaves something changed fails, and the next file in the process does not see the change. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

const preload = join(packageRoot, "test", "support", "preload.ts");
const folder = testFolder("leftovers");
const source = (...names: string[]) => JSON.stringify(join(packageRoot, "src", ...names));

/** Runs test files in one process, in this order. @returns the exit code and the output */
async function run(name: string, programs: readonly string[]) {
  const files = programs.map((_, at) => `${name}_${at}.test.ts`);
  for (const [at, program] of programs.entries())
    await Bun.write(folder.file(files[at]), `import { expect, spyOn, test } from "bun:test";\n${program}\n`);
  const command = [process.execPath, "test", `--preload=${preload}`, ...files.map((file) => `./${file}`)];
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: folder.path, stderr: "pipe" });
  return { exitCode, output: stderr.toString() };
}

const isFresh = `test("fresh", () => {
  const warn = spyOn(console, "warn").mockImplementation(() => undefined);
  console.warn("this file's");
  expect(warn.mock.calls).toEqual([["this file's"]]);
  warn.mockRestore();
  expect(Math.random()).not.toBe(4);
  expect(new Set([1, 2]).has(1)).toBe(true);
});`;

test.each([
  [
    "spy",
    `spyOn(console, "warn").mockImplementation(() => undefined); test("a", () => console.warn("b"));`,
    "console.warn",
  ],
  ["replaced", `test("a", () => { Math.random = () => 4; });`, "Math.random"],
])("a %s that a file leaves fails the file, and does not reach the next one", async (name, program, replaced) => {
  const { exitCode, output } = await run(name, [program, isFresh]);
  expect([exitCode, output]).toEqual([1, expect.stringContaining(`changes the functions ${replaced} `)]);
  expect(output).toContain(" 2 pass\n");
});

test("spies on other objects are restored after their file", async () => {
  const program = `spyOn(Set.prototype, "has").mockImplementation(() => false); test("a", () => undefined);`;
  const { exitCode, output } = await run("object", [program, isFresh]);
  expect([exitCode, output]).toEqual([0, expect.stringContaining(" 2 pass\n 0 fail")]);
});

test.if(!environmentFlag("ORCHARD_SKIP_METAL"))(
  "the next file reports no failures of a file's work on metal",
  async () => {
    const imports = `
    import { metalContext } from ${source("backend", "metal", "context.ts")};
    import { mul, ones, setBackend } from ${source("index.ts")};`;
    const fails = `${imports}
    test("a", () => {
      setBackend("metal");
      metalContext().injectFault("command-buffer", { count: 1 });
      mul(ones([5]), 2);
    });`;
    const warns = `${imports}
    test("b", () => {
      setBackend("metal");
      const warn = spyOn(console, "warn").mockImplementation(() => undefined);
      expect(ones([5]).sum().item()).toBe(5);
      expect(warn.mock.calls).toEqual([]);
      warn.mockRestore();
    });`;
    const { exitCode, output } = await run("metal", [fails, warns]);
    expect([exitCode, output]).toEqual([0, expect.stringContaining(" 2 pass\n 0 fail")]);
  },
);
