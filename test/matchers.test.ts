/** The matchers' tests run in a separate process, since they change `toEqual` for the whole process. */
import { expect, test } from "bun:test";
import { packageRoot } from "../src/core/paths.ts";

test("the matchers of orchard-metal/test compare tensors", () => {
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
