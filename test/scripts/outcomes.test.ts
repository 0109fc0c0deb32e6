/** Test outcomes that the suite keeps until a file that they may depend on changes. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { noTests, oneFailed } from "../../scripts/counts.ts";
import { Outcomes } from "../../scripts/suite/outcomes.ts";
import { describeKept, runKept, withKept } from "../../scripts/suite/part.ts";
import { withVariables } from "../support/environment.ts";
import { testFolder } from "../support/folder.ts";

const tests = ["test/ops/a.test.ts", "test/ops/b.test.ts", "test/scripts/names.test.ts", "test/readme.test.ts"];
const others = ["src/a.ts", "kernels/a.metal", "native/a.cpp", "test/support/a.ts", "docs/a.md", "package.json"];
/** The outcomes that a change of a file invalidates. */
const endedBy = (changed: string): readonly string[] =>
  others.includes(changed) ? tests : [changed, ...tests.slice(2)];

let root: string;
const write = (file: string, text: string): void => {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
};
const open = async (forget = false): Promise<Outcomes> => (await Outcomes.open({ root, forget }))!;

beforeEach(async () => {
  root = testFolder("outcomes").path;
  for (const file of [...tests, ...others]) write(file, file);
  write(".gitignore", "build/\n");
  Bun.spawnSync(["git", "init", "--quiet"], { cwd: root });
  const outcomes = await open();
  for (const [at, file] of tests.entries()) outcomes.keepFile(file, { passed: at + 1, skipped: at });
  outcomes.keepPart("Swift tests", { passed: 50, skipped: 0 });
  outcomes.allGaps("exp float64 on metal: Metal has no float64\n");
  outcomes.save();
});

const keptFiles = (outcomes: Outcomes): string[] => tests.filter((file) => outcomes.ofFile(file));

test("outcomes equal the last run's while no file changes", async () => {
  const outcomes = await open();
  expect(tests.map((file) => outcomes.ofFile(file))).toEqual(tests.map((_, at) => ({ passed: at + 1, skipped: at })));
  expect(outcomes.ofPart("Swift tests")).toEqual({ passed: 50, skipped: 0 });
  expect(outcomes.allGaps("a on metal: b")).toBe("exp float64 on metal: Metal has no float64\na on metal: b");
});

test("outcomes are invalidated by any file that they may depend on: changed, new, removed or restored", async () => {
  const change = fc.constantFrom(...tests, ...others);
  const property = fc.asyncProperty(change, fc.constantFrom("changed", "removed"), async (file, how) => {
    if (how === "changed") write(file, `${file}, changed`);
    else rmSync(join(root, file));
    const ended = endedBy(file);
    const outcomes = await open();
    const isPartEnded = others.includes(file);
    expect(keptFiles(outcomes)).toEqual(tests.filter((each) => !ended.includes(each)));
    expect(outcomes.ofPart("Swift tests") === undefined).toBe(isPartEnded);
    expect(outcomes.allGaps("")).toBe(isPartEnded ? "" : "exp float64 on metal: Metal has no float64");
    write(file, file);
    expect(keptFiles(await open())).toEqual(tests);
  });
  await fc.assert(property, { numRuns: 12, seed: 1 });
  write("src/new.ts", "");
  expect(keptFiles(await open())).toEqual([]);
});

test("outcomes are invalidated by the suite's variables, and when a run clears them", async () => {
  {
    using _ = withVariables({ ORCHARD_METAL_CHECK: "0" });
    expect(keptFiles(await open())).toEqual([]);
  }
  expect(keptFiles(await open(true))).toEqual([]);
});

test("outcomes do not depend on how long tests take, nor on ignored files", async () => {
  write("test/timings.json", "{}");
  write("build/a.o", "object");
  expect(keptFiles(await open())).toEqual(tests);
});

test("outcomes belong to the contents that files had when the run began", async () => {
  const outcomes = await open();
  write("test/ops/a.test.ts", "changed while it ran");
  outcomes.keepFile("test/ops/a.test.ts", { passed: 9, skipped: 0 });
  outcomes.save();
  expect((await open()).ofFile("test/ops/a.test.ts")).toBeUndefined();
});

test("outcomes are forgotten once a run no longer uses them, and when their file is damaged", async () => {
  const path = join(root, "build", "suite", "outcomes.json");
  const outcomes = await open();
  outcomes.ofFile(tests[0]);
  outcomes.save();
  expect(keptFiles(await open())).toEqual([tests[0]]);
  writeFileSync(path, readFileSync(path, "utf8").slice(0, 20));
  expect(keptFiles(await open())).toEqual([]);
});

test("outcomes are not kept without git", async () => {
  rmSync(join(root, ".git"), { recursive: true });
  expect(await Outcomes.open({ root })).toBeUndefined();
});

describe("a part of the tests is run once", () => {
  // The part's output would look like that of the suite that runs this file.
  let log: ReturnType<typeof spyOn>;
  beforeEach(() => {
    log = spyOn(console, "log").mockImplementation(() => {});
  });
  afterEach(() => log.mockRestore());

  test("a part that passed is not run again, and says so", async () => {
    const outcomes = await open();
    const result = await runKept("Swift tests", outcomes, () => Promise.reject(new Error("it ran")));
    expect(result.counts).toEqual({ ...noTests, passed: 50, kept: 50 });
    expect(describeKept([result])).toContain("50 of the tests passed in an earlier run");
    expect(describeKept([{ ...result, counts: noTests }])).toBe("");
  });

  test("a part that fails is run each time", async () => {
    const outcomes = await open();
    for (const message of ["first", "second"]) {
      const result = await runKept("Packages", outcomes, async () => oneFailed(message));
      expect(result.counts.failures).toEqual([message]);
    }
  });

  test("a part adds kept outcomes to new ones", () => {
    const earlier = [
      { passed: 3, skipped: 1 },
      { passed: 4, skipped: 0 },
    ];
    expect(withKept({ ...oneFailed("x"), passed: 2 }, earlier)).toEqual({
      passed: 9,
      failed: 1,
      skipped: 1,
      failures: ["x"],
      kept: 7,
    });
  });
});
