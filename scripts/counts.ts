/** True counts of tests, from what the test programs themselves report. */

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  /** Left out by the test itself, with its reason in the program's output. */
  readonly skipped: number;
}

export const noTests: Counts = { passed: 0, failed: 0, skipped: 0 };

export function sum(all: readonly Counts[]): Counts {
  return all.reduce(
    (left, right) => ({
      passed: left.passed + right.passed,
      failed: left.failed + right.failed,
      skipped: left.skipped + right.skipped,
    }),
    noTests,
  );
}

/**
 * XCTest's output. A test that started and did not end (the process died in it) counts as failed, and so does a run that
 * exits with a failure though every test it names passed.
 */
export function countXCTest(output: string, status: number): Counts {
  const named = (word: string) =>
    new Set([...output.matchAll(new RegExp(`Test Case '([^']+)' ${word}`, "g"))].map(([, name]) => name!));
  const passed = named("passed");
  const skipped = named("skipped");
  const unfinished = [...named("started")].filter((name) => !passed.has(name) && !skipped.has(name));
  const failed = Math.max(unfinished.length, status === 0 ? 0 : 1);
  return { passed: passed.size, failed, skipped: skipped.size };
}

/** Bun's JUnit report: the attributes of its root. Errors outside any test show in the exit status only. */
export function countJUnit(report: string | undefined, status: number): Counts {
  const root = /<testsuites\b[^>]*>/.exec(report ?? "")?.[0] ?? "";
  const attribute = (name: string) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(root)?.[1] ?? 0);
  const [tests, failures, skipped] = [attribute("tests"), attribute("failures"), attribute("skipped")];
  const isWhole = status === 0 && report !== undefined;
  const failed = Math.max(failures, isWhole ? 0 : 1);
  return { passed: tests - failures - skipped, failed, skipped };
}
