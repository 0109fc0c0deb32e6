/** An operation rejects a tensor of 2⁵² elements, or makes a view of it, before it begins to work. */
import { expect, test } from "bun:test";
import { tested } from "./run.ts";
import { virtualCalls } from "./virtual.ts";

test.each(tested)("each operation ends within a second of one processor on %s", (backend) => {
  const { outcomes } = virtualCalls(backend);
  expect(outcomes).not.toBeEmpty();
  expect(outcomes.filter(({ seconds }) => seconds > 1)).toEqual([]);
});
