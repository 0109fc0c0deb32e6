/** `bun run test:arm64`: which files it runs, how it counts, and one run with this Bun in place of an emulated one. */
import { describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { filesFor, parseWords, summarize } from "../../scripts/arm64/arm64.ts";
import { emulating } from "../../scripts/arm64/spawn.ts";
import { chooseFiles, notEmulated, reasonOf, testOn } from "../../scripts/arm64/tests.ts";
import { skippedTests } from "../../scripts/counts.ts";
import { buildFolder, cpuLibraryName, packageRoot } from "../../src/core/paths.ts";

const noMetal = "there is no Metal on this system";
const noReference = "the reference backend is TypeScript, the same on every processor";

describe("arguments of the command are parsed", () => {
  test("arguments name files and an emulated processor", () => {
    expect(parseWords(["test/quant", "--processor", "max", "test/linalg"])).toEqual({
      processor: "max",
      paths: ["test/quant", "test/linalg"],
    });
    expect(parseWords([])).toEqual({ paths: [] });
    expect(() => parseWords(["--processor", "m1"])).toThrow(
      "expected --processor to be one of max, cortex-a76, cortex-a72, got m1",
    );
    expect(() => parseWords(["--processor"])).toThrow("got nothing");
  });

  test("arguments choose among the tests of operations and the cpu backend", () => {
    const all = chooseFiles([]);
    expect(all).toContain("test/ops/softmax/softmax.test.ts");
    expect(all).toContain("test/backend/cpu/matmul.test.ts");
    expect(all).toContain("test/fixtures/fixtures.test.ts");
    expect(all.filter((file) => /backend\/metal|^test\/train/.test(file))).toEqual([]);
    const scans = [...new Bun.Glob("test/ops/scan/*.test.ts").scanSync({ cwd: packageRoot })].sort();
    expect(scans).toContain("test/ops/scan/scan.test.ts");
    expect(chooseFiles(["test/ops/scan/", "test/quant/blocks.test.ts"])).toEqual([
      ...scans,
      "test/quant/blocks.test.ts",
    ]);
    expect(chooseFiles(["test/ops/sc"])).toEqual([]);
  });

  test("a processor may run only some folders", () => {
    const files = ["test/quant/fast.test.ts", "test/ops/scan/scan.test.ts"];
    expect(filesFor({ folders: ["test/quant"] }, files)).toEqual(["test/quant/fast.test.ts"]);
    expect(filesFor({}, files)).toEqual(files);
  });
});

test("each test that is skipped in emulation exists", async () => {
  const texts = await Promise.all(chooseFiles([]).map((file) => Bun.file(join(packageRoot, file)).text()));
  for (const [words] of notEmulated) expect([words, texts.some((text) => text.includes(words))]).toEqual([words, true]);
});

test("Bun's path is replaced by the emulator's command wherever it is in a command", () => {
  const bun = ["qemu", "-cpu", "max", "bun"];
  expect(emulating(["/bin/bun", "-e", "1"], "/bin/bun", bun)).toEqual([...bun, "-e", "1"]);
  expect(emulating(["taskset", "-c", "0", "/bin/bun"], "/bin/bun", bun)).toEqual(["taskset", "-c", "0", ...bun]);
});

describe("skipped tests are counted", () => {
  test("counts list a report's skipped tests and the reasons", () => {
    const report =
      '<testsuite name="a"><testcase name="one" classname="a" file="a.test.ts" assertions="1" />\n' +
      '<testcase name="exp &lt; on reference" classname="a &gt; b" file="a.test.ts">\n  <skipped />\n</testcase>\n' +
      '<testcase name="a forked child starts its threads again" classname="" file="a.ts"><skipped /></testcase>\n' +
      '<testcase name="curve" classname="" file="a.test.ts"><skipped /></testcase>\n' +
      '<testcase name="bad" classname="" file="a.test.ts"><failure type="E" /></testcase></testsuite>';
    expect(skippedTests(report)).toEqual([
      "a > b > exp < on reference",
      "a forked child starts its threads again",
      "curve",
    ]);
    expect(skippedTests(report).map(reasonOf)).toEqual([noReference, expect.stringContaining("compiler"), noMetal]);
  });

  test("counts of processors are listed with what was skipped and what failed", () => {
    const outcome = (passed: number, failures: readonly string[], skipped: readonly string[]) => ({
      counts: { passed, failed: failures.length, skipped: skipped.length, failures },
      skipped,
    });
    const rows = [
      { processor: { name: "max" }, outcomes: [outcome(2, [], [noMetal]), outcome(3, ["a: b"], [noReference])] },
      { processor: { name: "cortex-a72" }, outcomes: [outcome(4, [], [noMetal])] },
    ];
    expect(summarize(rows).split("\n")).toEqual([
      "",
      "  max            5 passed, 1 failed",
      "  cortex-a72     4 passed, 0 failed",
      `  1 skipped: ${noReference}`,
      `  2 skipped: ${noMetal}`,
      "",
      "What failed",
      "  a: b",
    ]);
  });

  test("counts come from runs of the files, including a file that tests only Metal", async () => {
    const library = join(buildFolder, cpuLibraryName);
    const processor = { name: "this Bun", bun: [process.execPath], library, isEmulated: true };
    const outcomes = await testOn(processor, ["test/quant/metal.test.ts", "test/ops/softmax/large.test.ts"]);
    const [metal, softmax] = outcomes.toSorted((left, right) => left.counts.passed - right.counts.passed);
    expect(metal?.counts).toMatchObject({ passed: 0, failed: 0, failures: [] });
    expect(new Set(metal?.skipped)).toEqual(new Set([noMetal]));
    expect(softmax?.counts).toMatchObject({ passed: 7, failed: 0 });
    expect(softmax?.skipped.filter((reason) => reason !== noMetal)).toEqual(Array(7).fill(noReference));
    // This run fails on purpose, and its output would look like a failure of this test.
    const log = spyOn(console, "log").mockImplementation(() => undefined);
    try {
      const missing = await testOn({ ...processor, library: "/nowhere.so" }, ["test/ops/softmax/large.test.ts"]);
      expect(missing.map(({ counts }) => counts.failed > 0)).toEqual([true]);
      expect(log.mock.calls.join("\n")).toContain("ORCHARD_CPU_LIBRARY names /nowhere.so");
    } finally {
      log.mockRestore();
    }
  });
});
