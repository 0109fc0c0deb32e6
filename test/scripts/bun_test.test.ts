/** The outcome of a run of `bun test`, by file. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { runTestFiles } from "../../scripts/suite/bun_test.ts";
import { testFolder } from "../support/folder.ts";

/** Programs of test files. Each is named after its behavior, such as a failure in a test or outside of tests. */
const programs = {
  passes: { text: `test("a", () => expect(1).toBe(1));`, failed: 0, isOuter: false },
  fails: { text: `test("a", () => expect(1).toBe(2)); test("b", () => {});`, failed: 1, isOuter: false },
  throws: { text: `throw new Error("before any test");`, failed: 0, isOuter: true },
  throwsLate: { text: `test("a", () => {}); throw new Error("after a test");`, failed: 0, isOuter: true },
} as const;
type Program = keyof typeof programs;

test("tells errors outside the tests from failures, and failed files from passed ones", async () => {
  const kinds = fc.array(fc.constantFrom(...(Object.keys(programs) as Program[])), { minLength: 1, maxLength: 4 });
  let at = 0;
  const property = fc.asyncProperty(kinds, fc.boolean(), async (chosen, isParallel) => {
    const folder = testFolder(`bun_test_${at++}`).path;
    const files = chosen.map((kind, index) => {
      const file = join(folder, `${index}.test.ts`);
      writeFileSync(file, `import { expect, test } from "bun:test";\n${programs[kind].text}\n`);
      return file;
    });
    const run = await runTestFiles(files, { report: join(folder, "bun.xml"), isParallel, isQuiet: true });
    expect(run.hasOuterErrors).toBe(chosen.some((kind) => programs[kind].isOuter));
    const failed = run.files.filter((file) => file.failed > 0).map(({ file }) => file.match(/(\d+)\.test/)?.[1]);
    const expected = chosen.flatMap((kind, index) => (programs[kind].failed > 0 ? [`${index}`] : []));
    expect(failed.sort()).toEqual(expected);
  });
  await fc.assert(property, {
    numRuns: 4,
    seed: 1,
    examples: [
      [["fails", "passes"], true],
      [["passes", "throws"], true],
      [["fails", "throws"], false],
    ],
  });
});

test("parallel processes start with the file of the longest time, regardless of its path", async () => {
  const folder = testFolder("bun_test_times").path;
  const started = JSON.stringify(join(folder, "started"));
  const longest = `test("a", () => Bun.write(${started}, ""));`;
  const isMissing = `!(await Bun.file(${started}).exists())`;
  const waits = `test("a", async () => { while (${isMissing}) await Bun.sleep(5); }, 300_000);`;
  const files = Array.from({ length: 12 }, (_, at) => join(folder, `${String(at).padStart(2, "0")}.test.ts`));
  for (const [at, file] of files.entries())
    writeFileSync(file, `import { test } from "bun:test";\n${at === 11 ? longest : waits}\n`);
  const times = (file: string) => (file === files[11] ? 9 : 1);
  const run = await runTestFiles(files, { report: join(folder, "bun.xml"), isParallel: true, times, isQuiet: true });
  expect(run.counts).toMatchObject({ passed: 12, failed: 0 });
});
