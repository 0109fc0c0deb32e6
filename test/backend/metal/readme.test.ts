import { describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { bunWords } from "../../support/program.ts";
import { examplesOf } from "../../support/readme.ts";

const documents = ["README.md", "docs/overrides.md"];

test.each(documents)(
  "the kernel in %s runs as written, imported from the package by name, and prints the documented output",
  (path) => {
    const { program, promised } = examplesOf(path).find(({ program }) => program.includes("metalKernel"))!;
    const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], { cwd: packageRoot });
    expect(promised[0]).toMatch(/^(Float32Array\(2\) )?\[ /);
    expect(withoutAnnouncement(`${stdout}${stderr}`).replace(/\s+/g, " ").trim()).toBe(promised.join(" "));
  },
);

describe("the programs of docs/kernels.md run", () => {
  const examples = examplesOf("docs/kernels.md").map((example, index) => ({ ...example, index: index + 1 }));

  test("the page goes from a first kernel to the checker's findings", () => {
    const printed = examples.flatMap(({ promised }) => promised).join(" ");
    for (const finding of [
      "out-of-bounds",
      "device-race",
      "threadgroup-race",
      "uninitialized-read",
      "barrier-divergence",
    ])
      expect(printed).toContain(`${finding}`);
    expect(examples.length).toBeGreaterThanOrEqual(9);
  });

  // Apple's device has no checker.
  const here = examples.filter(({ program }) => metalContext().isSoftware || !program.includes("findings"));

  test.each(here)("program $index runs as written: $title", ({ program, promised }) => {
    const env = { ...process.env, ORCHARD_METAL_CHECK: "1" };
    const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "-e", program], { cwd: packageRoot, env });
    expect(promised).not.toEqual([]);
    expect(stdout.toString().replace(/\s+/g, " ").trim()).toBe(promised.join(" "));
    // The checker's findings are printed as well, and the process fails.
    const isChecked = program.includes("findings");
    expect([exitCode, /the Metal checker found \d+ errors?/.test(stderr.toString())]).toEqual([
      isChecked ? 1 : 0,
      isChecked,
    ]);
    if (!isChecked) expect(withoutAnnouncement(stderr.toString())).toBe("");
  });
});
