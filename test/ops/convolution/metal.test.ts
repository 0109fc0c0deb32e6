/** The kernels of convolutions on metal, beyond one tile and in parts, under the checker and in numeric variants. */
import { test } from "bun:test";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { checked, testVariants } from "../../linalg/variants.ts";
import { type Case, checkCase } from "./cases.ts";

const cases: Readonly<Record<string, Case>> = {
  "several tiles, and the weight's gradient in parts": {
    ...({ x: [2, 5, 17, 16], weight: [37, 5, 3, 2] } as const),
    ...{ stride: 1, padding: 1, groups: 1 },
  },
  "phases of a stride, some without a place": {
    ...({ x: [1, 9, 11, 12], weight: [10, 9, 2, 2] } as const),
    ...{ stride: 3, padding: 1, groups: 1 },
  },
  "phases and dilation": {
    ...({ x: [1, 3, 12, 13], weight: [9, 3, 3, 3] } as const),
    ...{ stride: 4, padding: 3, groups: 1, dilation: 2 },
  },
  "more remainders than launches": {
    ...({ x: [1, 2, 20, 19], weight: [3, 2, 2, 3] } as const),
    ...{ stride: 9, padding: 2, groups: 1 },
  },
  "groups of several rows": {
    ...({ x: [1, 16, 5, 6], weight: [18, 8, 3, 3] } as const),
    ...{ stride: 1, padding: 1, groups: 2 },
  },
  "one channel a group": {
    ...({ x: [2, 3, 9, 8], weight: [6, 1, 3, 3] } as const),
    ...{ stride: 2, padding: 1, groups: 3 },
  },
};

test.if(whyUnavailable("metal") === undefined).each(Object.entries(cases))("on metal: %s", (_, own) => {
  checked(() => checkCase("metal", own, "float32"));
});

testVariants(import.meta.path, "on metal: (several|one|phases and)");
