/** Which tests may depend on the machine's load, by the names of their files. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { classOf, type LoadClass, loadClasses } from "../../scripts/suite/classes.ts";
import { packageRoot } from "../../src/core/paths.ts";

const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: packageRoot })].sort();

/** Words of tests that depend on load, and the classes that may have them. */
const words: Readonly<Record<string, LoadClass>> = {
  "process.cpuUsage(": "timing",
  "memoryUsage.rss(": "memory",
  "/proc/self/smaps": "memory",
  'flat-memory.ts"': "memory",
  'forgotten.ts"': "memory",
  spawnInGroup: "memory",
  'from "./launch.ts"': "hosts",
  "setTimeout(() => child.kill": "faults",
  "performance.now(": "timing", // tests wait with test/support/wait.ts
};

/**
 * Files that contain such a word, but whose results do not depend on load: a quota is only a limit, and a pause only a
 * minimum.
 */
const exempt = ["test/backend/cpu/processors.test.ts", "test/io/hub_models.test.ts", "test/scripts/classes.test.ts"];

test("every class has files", () => {
  for (const name of Object.keys(loadClasses))
    expect([name, files.some((file) => classOf(file) === name)]).toEqual([name, true]);
});

test("files whose results depend on the machine's load have one of the special endings", () => {
  const problems = files.flatMap((file) => {
    const text = readFileSync(join(packageRoot, file), "utf8");
    return Object.entries(words)
      .filter(([word, wanted]) => text.includes(word) && classOf(file) !== wanted && !exempt.includes(file))
      .map(([word, wanted]) => `${file} has ${word}: class ${wanted}, got ${classOf(file) ?? "none"}`);
  });
  expect(problems).toEqual([]);
});

test("no test has a shorter limit of time than the suite's", () => {
  const short = files.filter((file) => {
    const text = readFileSync(join(packageRoot, file), "utf8");
    return /\}(?:, |,\n *)\d{1,3}_?000(?:,\n *)?\);$/m.test(text);
  });
  expect(short).toEqual([]);
});
