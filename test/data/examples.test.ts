/** The programs of docs/data.md run as written, and print the output in their comments. */
import { expect, test } from "bun:test";
import { packageRoot } from "../../src/core/paths.ts";
import { bunWords } from "../support/program.ts";
import { examplesOf } from "../support/readme.ts";

const examples = examplesOf("docs/data.md").filter(({ program }) => program.includes("import "));

test("examples with imports are programs that print something", () => {
  expect(examples.length).toBe(3);
  expect(examples.filter(({ promised }) => promised.length === 0)).toEqual([]);
});

test.each(examples)("the example runs: $title", ({ program, promised }) => {
  const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([stdout.toString().trimEnd().split("\n"), stderr.toString()]).toEqual([[...promised], ""]);
});
