/** Requires the dylib, so it is skipped without the metal backend. */
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { copyHeaders, headersFolder } from "../../scripts/swift/dylib.ts";
import { library } from "../../src/backend/metal/loader.ts";
import { packageRoot } from "../../src/core/paths.ts";

test("this machine's loader resolves every name that the dylib needs", () => {
  const command = process.platform === "linux" ? ["ldd", "-r"] : ["otool", "-L"];
  const { stdout, stderr } = Bun.spawnSync([...command, library().path]);
  const text = `${stdout}${stderr}`;
  expect(text).toContain(process.platform === "linux" ? "libc.so" : "/usr/lib/libSystem");
  expect(text.split("\n").filter((line) => /undefined symbol|not found/.test(line))).toEqual([]);
});

test("setup, if it was run before, installs nothing and says which Swift there is", () => {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "scripts/launch.ts", "setup"], {
    cwd: packageRoot,
  });
  expect(stdout.toString()).toMatch(/^Swift \d+\.\d+(\.\d+)?: \/\S+\/swift\n$/);
  expect([stderr.toString(), exitCode]).toEqual(["", 0]);
});

test("a build without changes does not touch the headers, which other processes may be reading", async () => {
  if (process.platform !== "linux") return;
  const { ino } = statSync(headersFolder);
  await copyHeaders();
  expect(statSync(headersFolder).ino).toBe(ino);
});
