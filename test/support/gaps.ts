/** A test file with gaps, for the test of the suite's report. */
import { afterAll, expect, test } from "bun:test";
import { gaps, writeGaps } from "../ops/run.ts";

afterAll(writeGaps);

test("two operations of float64 on metal", () => {
  for (const name of ["exp", "erf"]) gaps.push(`${name} float64 on metal: Metal has no float64`);
  expect(gaps).toHaveLength(2);
});
