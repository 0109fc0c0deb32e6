/**
 * The examples of docs/nn.md run as written, imported from the package by name, and print the output in their comments.
 */
import { expect, test } from "bun:test";
import { packageRoot } from "../../src/core/paths.ts";
import { bunWords } from "../support/program.ts";
import { examplesOf } from "../support/readme.ts";

const examples = examplesOf("docs/nn.md");

test("each example prints something", () => {
  expect(examples.length).toBe(11);
  expect(examples.filter(({ promised }) => promised.length === 0)).toEqual([]);
});

test.each(examples)("the example runs: $title", ({ program, promised }) => {
  const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], {
    cwd: packageRoot,
    env: { ...process.env, ORCHARD_BACKEND: "cpu" },
  });
  expect([stdout.toString().trimEnd().split("\n"), stderr.toString()]).toEqual([[...promised], ""]);
});
