/** `.ci/run` with an `npx` that plays the suite. */
import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { testFolder } from "../support/folder.ts";

/** The result of `.ci/run` for a suite that prints `output` and exits with `status`. */
function runCi(output: string, status: number, ...words: string[]) {
  const { path: folder } = testFolder("ci");
  writeFileSync(join(folder, "npx"), `#!/bin/sh\necho "$@"\nprintf '${output}'\nexit ${status}\n`);
  chmodSync(join(folder, "npx"), 0o755);
  const { stdout, exitCode } = Bun.spawnSync([join(packageRoot, ".ci/run"), ...words], {
    env: { ...process.env, PATH: `${folder}:${process.env["PATH"]}` },
  });
  const printed = stdout.toString();
  return { printed, lastLine: printed.trimEnd().split("\n").at(-1), succeeded: exitCode === 0 };
}

test.each([
  ["a green suite", "2 passed, 1 failed\\n12 passed, 0 failed\\n", 0, "12 passed, 0 failed", true],
  [
    "a red one, whose counts are not the last line",
    "12 passed, 3 failed\\nerror: script exited\\n",
    1,
    "12 passed, 3 failed",
    false,
  ],
  ["one that does not come to its end", "Building\\n", 137, "0 passed, 1 failed", false],
  ["one that says nothing and succeeds", "", 0, "0 passed, 1 failed", false],
] as const)("the continuous integration step is right: %s", (_, output, status, lastLine, succeeded) => {
  expect(runCi(output, status)).toMatchObject({ lastLine, succeeded });
});

test(".ci/run passes its options on", () => {
  const { printed } = runCi("1 passed, 0 failed\\n", 0, "--shard", "1/3");
  expect(printed).toMatch(/^--yes bun@[\d.]+ run test --shard 1\/3$/m);
});
