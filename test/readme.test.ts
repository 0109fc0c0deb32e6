/**
 * Examples of tensors in documents run as written, imported from the package by name, and print the output in their
 * comments.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import packageFile from "../package.json";
import { packageRoot } from "../src/core/paths.ts";
import { testFolder } from "./support/folder.ts";
import { bunWords } from "./support/program.ts";
import { examplesOf, programsOf, promisedText, writeBooks } from "./support/readme.ts";

const examples = (document: string) =>
  examplesOf(document).filter(({ program }) => program.includes("import ") && !program.includes("metalKernel"));

test("the README's first program is twelve lines that train", () => {
  const { program, promised } = examplesOf("README.md")[0];
  expect(program.split("\n").filter(Boolean)).toHaveLength(12);
  expect(program).toContain(".backward()");
  expect(promised).toEqual(["true"]);
});

const documents = [
  "README",
  "docs/start",
  "docs/indexing",
  "docs/debugging",
  "docs/memory",
  "docs/from-pytorch",
  "docs/from-mlx",
  "docs/from-tensorflow-js",
  "docs/overrides",
  "docs/attention",
  "docs/fft",
  "docs/saving",
  "docs/shipping",
  "docs/vision",
].map((name) => `${name}.md`);

describe.each(documents)("programs in %s", (document) => {
  test.each(examples(document))("the program runs: $title", ({ program, promised }) => {
    const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_BACKEND: "cpu" },
    });
    expect([stdout.toString().trimEnd().split("\n"), stderr.toString()]).toEqual([[...promised], ""]);
  });
});

describe("docs/training.md shows a whole program", () => {
  const { path: folder } = testFolder("training");
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(packageRoot, join(folder, "node_modules", packageFile.name));

  const programs = programsOf("docs/training.md");

  test("the page has a loop, data, a tokenizer, a checkpoint and an optimizer", () =>
    expect(programs.length).toBeGreaterThan(4));

  test.each(programs)("the program runs: $title", async (example) => {
    await writeBooks(folder);
    const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", example.program], {
      cwd: folder,
      env: { ...process.env, ORCHARD_BACKEND: "cpu", XDG_CACHE_HOME: join(folder, "cache") },
    });
    expect([stdout.toString(), stderr.toString()]).toEqual([promisedText(example), ""]);
  });
});
