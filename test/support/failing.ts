/** Run as a test file by name, to see what the suite says of tests that fail. */
import { expect, test } from "bun:test";

test("two is one", () => expect(2).toBe(1));
test("one is one", () => expect(1).toBe(1));
