/** Training of a GPT that disposes of nothing: native bytes and the process stay flat. */
import { setDefaultTimeout, test } from "bun:test";
import { checkFlat } from "../support/flat-memory.ts";
import { testFolder } from "../support/folder.ts";

setDefaultTimeout(300_000);

const folder = testFolder("gpt-memory");

test("10,000 steps of a loop that never waits", () => checkFlat("gpt-training.ts", "loop", folder.path, "10000"));
test("2,000 steps of a run that is evaluated, sampled and saved on the way", () =>
  checkFlat("gpt-training.ts", "run", folder.path, "2000"));
