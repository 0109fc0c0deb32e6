import { expect, test } from "bun:test";
import { packageRoot } from "../../../src/core/paths.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { examplesOf } from "../../support/readme.ts";

test("the README's kernel runs as written, by the package's own name, and prints what it says", () => {
  const { program, promised } = examplesOf("README.md").find(({ program }) => program.includes("metalKernel"))!;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], { cwd: packageRoot });
  expect(promised[0]).toStartWith("Float32Array(2) [");
  expect(withoutAnnouncement(`${stdout}${stderr}`).replace(/\s+/g, " ").trim()).toBe(promised.join(" "));
});
