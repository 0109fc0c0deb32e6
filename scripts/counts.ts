/** Counts of tests and their failures, from the reports of the test programs. */

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  /** Tests that skip themselves; the reason is in the program's output. */
  readonly skipped: number;
  /** The failures, each with its first message if there is one. */
  readonly failures: readonly string[];
}

export const noTests: Counts = { passed: 0, failed: 0, skipped: 0, failures: [] };
export const onePassed: Counts = { ...noTests, passed: 1 };
export const oneFailed = (what: string): Counts => ({ ...noTests, failed: 1, failures: [what] });

export function sum(all: readonly Counts[]): Counts {
  return all.reduce(
    (left, right) => ({
      passed: left.passed + right.passed,
      failed: left.failed + right.failed,
      skipped: left.skipped + right.skipped,
      failures: [...left.failures, ...right.failures],
    }),
    noTests,
  );
}

/**
 * Parses XCTest's output. A test that started and did not end (the process crashed) counts as failed, and so does a run
 * that exits with a failure although all its tests passed.
 */
export function countXCTest(output: string, status: number): Counts {
  const named = (word: string) =>
    new Set([...output.matchAll(new RegExp(`Test Case '([^']+)' ${word}`, "g"))].map(([, name]) => name));
  const passed = named("passed");
  const skipped = named("skipped");
  const unfinished = [...named("started")].filter((name) => !passed.has(name) && !skipped.has(name));
  const failures = unfinished.map((name) => {
    const started = output.slice(output.indexOf(`Test Case '${name}' started`));
    const message = /(?:error: |Fatal error: ).*/.exec(started.split("\nTest Case '", 2)[0])?.[0];
    return message ? `${name}: ${message}` : name;
  });
  return { passed: passed.size, skipped: skipped.size, ...failedOf(failures, status === 0, status) };
}

/** Counts at least one failure for a failed run, even if no test reports one. */
function failedOf(
  failures: readonly string[],
  succeeded: boolean,
  status: number,
): Pick<Counts, "failed" | "failures"> {
  const all = succeeded || failures.length > 0 ? failures : [`outside the tests: the run ended with status ${status}`];
  return { failed: all.length, failures: all };
}

/** Parses the root of Bun's JUnit report. Errors outside tests appear only in the exit status. */
export function countJUnit(report: string | undefined, status: number): Counts {
  const root = /<testsuites\b[^>]*>/.exec(report ?? "")?.[0] ?? "";
  const count = (name: string) => Number(attribute(root, name) ?? 0);
  const [tests, failed, skipped] = [count("tests"), count("failures"), count("skipped")];
  const passed = tests - failed - skipped;
  const failures = junitFailures(report ?? "");
  if (failed > 0) return { passed, failed, skipped, failures };
  return { passed, skipped, ...failedOf([], status === 0 && report !== undefined, status) };
}

/** The time of a test file. */
export interface FileTime {
  readonly file: string;
  readonly seconds: number;
}

/** The report's results for one file. */
export interface FileOutcome extends FileTime {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Returns the files of a JUnit report of Bun: an outermost suite is a file. */
export const fileOutcomes = (report: string): FileOutcome[] =>
  [...report.matchAll(/^ {2}<testsuite\b([^>]*)>/gm)].map(([, suite]) => {
    const number = (name: string) => Number(attribute(suite, name) ?? 0);
    const [failed, skipped] = [number("failures"), number("skipped")];
    const passed = number("tests") - failed - skipped;
    return { file: attribute(suite, "file") ?? "", seconds: number("time"), passed, failed, skipped };
  });

/** A failed test: its suites and name, and the lines of its message as one line. */
export interface FailedTest {
  readonly file: string | undefined;
  readonly name: string;
  readonly message: string | undefined;
}

/** Returns the failed tests of a report of Bun. */
export const failedTests = (report: string): FailedTest[] =>
  [...report.matchAll(/<testcase\b([^>]*[^>/])>\s*<failure\b([^>]*)>/g)].map(([, test, failure]) => ({
    file: attribute(test, "file"),
    name: [attribute(test, "classname"), attribute(test, "name")].filter(Boolean).join(" > "),
    message: attribute(failure, "message")?.split("\n").filter(Boolean).join(" "),
  }));

/** `file: suite > test: message`. */
const junitFailures = (report: string): string[] =>
  failedTests(report).map(({ file, name, message }) => [file, name, message].filter(Boolean).join(": "));

/** Returns the tests that a report of Bun lists as skipped: by themselves or by a pattern. */
export const skippedTests = (report: string): string[] =>
  [...report.matchAll(/<testcase\b([^>]*[^>/])>\s*<skipped\b/g)].map(([, test]) =>
    [attribute(test, "classname"), attribute(test, "name")].filter(Boolean).join(" > "),
  );

function attribute(element: string, name: string): string | undefined {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(element)?.[1];
  return value?.replace(/&(?:#(\d+)|(\w+));/g, (_, code, entity) =>
    code ? String.fromCodePoint(code) : entities[entity],
  );
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
