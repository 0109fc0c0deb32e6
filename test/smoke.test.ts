/** `bun run test smoke`: one backward pass of attention on every backend, to see in seconds whether a build works. */
import { expect, test } from "bun:test";
import { codepaths } from "../src/backend/codepaths.ts";
import { resetCodepaths } from "../src/index.ts";
import type { AttentionCase } from "./ops/attention/cases.ts";
import { checkCase, ways } from "./ops/attention/run.ts";

const plain = "contiguous";
const attention: AttentionCase = {
  name: "smoke",
  batch: 2,
  heads: 4,
  queries: 32,
  keys: 32,
  dim: 16,
  valueDim: 16,
  causal: "bottom-right",
  layouts: [plain, plain, plain, plain],
};

test.each(ways.map((way) => [way.name, way] as const))("attention is right, forward and backward: %s", (_, way) => {
  resetCodepaths();
  checkCase(attention, "float32", way);
  const passes = codepaths().filter(({ operation }) => /^attention(Forward|Backward)$/.test(operation));
  const wanted = way.path === "fused" ? [way.backend, way.backend] : [];
  expect(passes.map(({ backend }) => backend)).toEqual(wanted);
});
