/** A test file that fails, run by name to test the suite's report. */
import { expect, test } from "bun:test";

test("two is one", () => expect(2).toBe(1));
test("one is one", () => expect(1).toBe(1));
