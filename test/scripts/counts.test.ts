import { describe, expect, test } from "bun:test";
import { countJUnit, countXCTest, sum } from "../../scripts/counts.ts";

const passed = (name: string) =>
  `Test Case '${name}' started at 2026-01-01 10:00:00.000\nTest Case '${name}' passed (0.1 seconds)\n`;
const failing = (name: string) =>
  `Test Case '${name}' started at 2026-01-01 10:00:00.000\nA.swift:3: error: ${name} : XCTAssertTrue failed\n` +
  `Test Case '${name}' failed (0.1 seconds)\n`;

describe("tests are counted in reports of XCTest", () => {
  test("tests are counted, not assertions", () => {
    const summary = "Executed 2 tests, with 3 failures (0 unexpected) in 0.2 seconds";
    const output = `${passed("A.one")}${failing("A.two")}${summary}`;
    expect(countXCTest(output, 1)).toEqual({
      passed: 1,
      failed: 1,
      skipped: 0,
      failures: ["A.two: error: A.two : XCTAssertTrue failed"],
    });
  });

  test("a test in which the process died counts as failed", () => {
    const output = `${passed("A.one")}Test Case 'A.two' started at 2026-01-01 10:00:00.000\nFatal error: no\n`;
    expect(countXCTest(output, 132)).toEqual({
      passed: 1,
      failed: 1,
      skipped: 0,
      failures: ["A.two: Fatal error: no"],
    });
  });

  test("a run that fails outside its tests is a failure", () => {
    const failures = (status: number) => [`outside the tests: the run ended with status ${status}`];
    expect(countXCTest(passed("A.one"), 1)).toEqual({ passed: 1, failed: 1, skipped: 0, failures: failures(1) });
    expect(countXCTest("", 127)).toEqual({ passed: 0, failed: 1, skipped: 0, failures: failures(127) });
  });

  test("skipped tests are neither passed nor failed", () => {
    const output = `${passed("A.one")}Test Case 'A.two' started at 1\nTest Case 'A.two' skipped (0.0 seconds)\n`;
    expect(countXCTest(output, 0)).toEqual({ passed: 1, failed: 0, skipped: 1, failures: [] });
  });

  test("Apple's test names are counted as well", () => {
    const output = "Test Case '-[Tests.A one]' started.\nTest Case '-[Tests.A one]' passed (0.001 seconds).\n";
    expect(countXCTest(output, 0)).toEqual({ passed: 1, failed: 0, skipped: 0, failures: [] });
  });
});

describe("tests are counted in reports of JUnit", () => {
  const report =
    '<?xml version="1.0"?>\n' +
    '<testsuites name="bun test" tests="10" assertions="30" failures="2" skipped="1" time="0.1">\n' +
    '<testsuite tests="99"/><testcase name="fine" file="a.test.ts" />\n' +
    '<testcase name="is &lt; 2 &amp; odd" classname="outer" file="a.test.ts" line="2">\n' +
    '<failure type="Error" message="Expected: 2&#10;&#10;Received: &quot;1&quot;">Error</failure></testcase>\n' +
    '<testcase name="late" classname="" file="b.test.ts"><failure type="TimeoutError" /></testcase>';

  test("the root's attributes are the counts", () => {
    expect(countJUnit(report, 1)).toEqual({
      passed: 7,
      failed: 2,
      skipped: 1,
      failures: ['a.test.ts: outer > is < 2 & odd: Expected: 2 Received: "1"', "b.test.ts: late"],
    });
  });

  test("an error outside the tests counts, and so does a missing report", () => {
    expect(countJUnit('<testsuites tests="3" failures="0" skipped="0">', 1)).toEqual({
      passed: 3,
      failed: 1,
      skipped: 0,
      failures: ["outside the tests: the run ended with status 1"],
    });
    expect(countJUnit(undefined, 0)).toMatchObject({ passed: 0, failed: 1, skipped: 0 });
  });
});

test("sums add the counts of each kind", () => {
  expect(
    sum([
      { passed: 1, failed: 2, skipped: 3, failures: ["a", "b"] },
      { passed: 10, failed: 20, skipped: 30, failures: ["c"] },
    ]),
  ).toEqual({ passed: 11, failed: 22, skipped: 33, failures: ["a", "b", "c"] });
});
