/** Examples of tensors in documents run as written, by the package's own name, and print what their comments say. */
import { expect, test } from "bun:test";
import { packageRoot } from "../src/core/paths.ts";
import { examplesOf } from "./support/readme.ts";

const examples = ["README.md", "docs/overrides.md"]
  .flatMap(examplesOf)
  .filter(({ program }) => !program.includes("metalKernel"));

test("tensors and their gradients come first", () => {
  expect(examples[0]?.program).toContain(".backward()");
  expect(examples[0]?.promised.length).toBeGreaterThan(1);
});

test.each(examples)("$title", ({ program, promised }) => {
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([stdout.toString().trimEnd().split("\n"), stderr.toString()]).toEqual([[...promised], ""]);
});
