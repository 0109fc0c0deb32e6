/** Which dylibs `bun run test FILE` builds before the file runs. */
import { expect, test } from "bun:test";
import { type Dylib, dylibsToBuild } from "../../scripts/suite/dylibs.ts";
import { withVariables } from "../support/environment.ts";
import { testFolder } from "../support/folder.ts";

const files = {
  /** Imports `test/ops/run.ts`, which runs each row on every backend. */
  rows: "test/ops/softmax/softmax.test.ts",
  /** Names the backend. */
  metal: "test/backend/metal/buffers.test.ts",
  /** Uses no backend but the first. */
  scripts: "test/scripts/counts.test.ts",
};
const first: Dylib = process.platform === "darwin" ? "metal" : "cpu";
const isMissing = () => true;

test("files need the first backend, and those that they or their imports name", () => {
  expect(dylibsToBuild([files.scripts], isMissing)).toEqual([first]);
  expect(dylibsToBuild([files.rows], isMissing)).toEqual(["cpu", "metal"]);
  expect(dylibsToBuild([files.scripts, files.metal], isMissing)).toContain("metal");
});

test("dylibs that are there are not built, whatever the files", () => {
  expect(dylibsToBuild(Object.values(files), () => false)).toEqual([]);
  expect(dylibsToBuild(Object.values(files), (name) => name === "metal")).toEqual(["metal"]);
  expect(dylibsToBuild(["no such file"], (name) => name !== first)).toEqual([]);
});

test("a dylib that a variable names is not built, and neither is metal if it is skipped", () => {
  const missing = testFolder("dylibs").file("missing.so");
  using _ = withVariables({ ORCHARD_CPU_LIBRARY: missing, ORCHARD_LIBRARY: missing });
  expect(dylibsToBuild(Object.values(files))).toEqual([]);
  using __ = withVariables({ ORCHARD_LIBRARY: undefined, ORCHARD_SKIP_METAL: "1" });
  expect(dylibsToBuild(Object.values(files))).toEqual([]);
});
