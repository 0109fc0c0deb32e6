/** The suite's run on an NVIDIA GPU: outcomes of files, and the table of exceptions. No GPU is needed. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describeOutcomes, findingsOf, outcomeOf } from "../../scripts/suite/gpu.ts";
import { exceptions, variables, whyNotRun } from "../../scripts/suite/gpu_exceptions.ts";
import { packageRoot } from "../../src/core/paths.ts";

const file = "test/linalg/lu.metal.test.ts";
const failing = (name: string): string =>
  `<testcase name="${name}" classname="LU on metal" file="${file}"><failure message="1 &gt; 0" /></testcase>`;
const report = (tests: number, failures: readonly string[]): string =>
  `<testsuites tests="${tests}" failures="${failures.length}" skipped="1">${failures.map(failing)}</testsuites>`;

describe("a run of the suite on a GPU", () => {
  test("a failed test with an exception is left out, and all others are failures", () => {
    const outcome = outcomeOf(file, report(10, ["8 x 8: LU moves each element once", "solves"]), 1, 2);
    expect(outcome).toEqual({
      seconds: 2,
      passed: 7,
      skipped: 1,
      failed: ["LU on metal > solves: 1 > 0"],
      leftOut: { "LU on metal > 8 x 8: LU moves each element once": expect.stringContaining("counters") },
    });
    expect(describeOutcomes({ [file]: outcome }, ["test/a.test.ts"])).toEndWith(
      "1 files: 7 tests passed, 1 failed, 1 left out; 1 files were not run",
    );
  });

  test("a file that ends without a report, or with an error outside its tests, is a failure", () => {
    expect(outcomeOf(file, undefined, 137, 170).failed).toEqual(["the file did not end in time"]);
    expect(outcomeOf(file, undefined, 1, 2).failed).toEqual(["the file ended with status 1"]);
    expect(outcomeOf(file, report(3, []), 1, 2).failed).toEqual(["the file ended with status 1"]);
    expect(outcomeOf(file, report(3, []), 0, 2)).toMatchObject({ passed: 2, failed: [], leftOut: {} });
  });

  test("findings of compute-sanitizer are failures", () => {
    const start = "========= COMPUTE-SANITIZER\n";
    expect(findingsOf(`${start}========= ERROR SUMMARY: 0 errors\n`)).toEqual([]);
    expect(findingsOf(`${start}========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n`)).toEqual([]);
    const invalid = "========= Invalid __global__ read of size 4 bytes\n=========     at mrt_entry_0+0x40\n";
    const race = "========= Error: Race reported between Write access at a+0x10 and Read access at a+0x20\n";
    expect(findingsOf(`${start}${invalid}${invalid}${race}========= ERROR SUMMARY: 3 errors\n`)).toEqual([
      "compute-sanitizer: Invalid __global__ read of size 4 bytes (2 times)",
      "compute-sanitizer: Race reported between Write access at a+0x10 and Read access at a+0x20 (1 times)",
    ]);
    expect(findingsOf("========= ERROR SUMMARY: 2 errors\n")).toEqual([
      "compute-sanitizer: errors of another kind (2 times)",
    ]);
  });

  test("each exception names files that exist, and parts of titles that they have", () => {
    const files = [...new Bun.Glob("test/**/*.test.ts").scanSync(packageRoot)];
    for (const { files: start, tests } of exceptions) {
      const matching = files.filter((path) => path.startsWith(start));
      expect([start, matching.length > 0]).toEqual([start, true]);
      const text = matching.map((path) => readFileSync(join(packageRoot, path), "utf8")).join("\n");
      for (const part of tests ?? []) expect([start, part, text.includes(part)]).toEqual([start, part, true]);
    }
    for (const path of Object.keys(variables)) expect(files).toContain(path);
    expect(whyNotRun("test/ops/matmul/matmul.test.ts")).toBeUndefined();
  });
});
