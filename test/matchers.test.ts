/** The matchers' tests run in a process of their own: `toEqual` is changed for all that runs in one. */
import { expect, test } from "bun:test";
import { packageRoot } from "../src/core/paths.ts";

test("the matchers of orchard-metal/test", () => {
  const { stderr, exitCode } = Bun.spawnSync([process.execPath, "test", "./test/support/matchers.ts"], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: undefined },
  });
  expect([
    stderr
      .toString()
      .match(/^ *\d+ (?:pass|fail)$/gm)
      ?.map((line) => line.trim()),
    exitCode,
  ]).toEqual([["9 pass", "0 fail"], 0]);
});
