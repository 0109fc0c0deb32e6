/** Examples of tensors in documents run as written, by the package's own name, and print what their comments say. */
import { describe, expect, test } from "bun:test";
import { packageRoot } from "../src/core/paths.ts";
import { examplesOf } from "./support/readme.ts";

const examples = (document: string) => examplesOf(document).filter(({ program }) => !program.includes("metalKernel"));

test("the README's first program is twelve lines that train", () => {
  const { program, promised } = examplesOf("README.md")[0]!;
  expect(program.split("\n").filter(Boolean)).toHaveLength(12);
  expect(program).toContain(".backward()");
  expect(promised).toEqual(["true"]);
});

const documents = ["README.md", "docs/start.md", "docs/from-pytorch.md", "docs/from-mlx.md", "docs/overrides.md"];

describe.each(documents)("%s", (document) => {
  test.each(examples(document))("$title", ({ program, promised }) => {
    const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_BACKEND: "cpu" },
    });
    expect([stdout.toString().trimEnd().split("\n"), stderr.toString()]).toEqual([[...promised], ""]);
  });
});
