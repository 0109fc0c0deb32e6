import { expect, test } from "bun:test";
import { packageRoot } from "../../../src/core/paths.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { examplesOf } from "../../support/readme.ts";

const documents = ["README.md", "docs/overrides.md"];

test.each(documents)("the kernel in %s runs as written, by the package's own name, and prints what it says", (path) => {
  const { program, promised } = examplesOf(path).find(({ program }) => program.includes("metalKernel"))!;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], { cwd: packageRoot });
  expect(promised[0]).toMatch(/^(Float32Array\(2\) )?\[ /);
  expect(withoutAnnouncement(`${stdout}${stderr}`).replace(/\s+/g, " ").trim()).toBe(promised.join(" "));
});
