/** The kernels for NVIDIA GPUs, run on the software device, against the formula. */
import { describe, test } from "bun:test";
import { environmentFlag } from "../../../src/core/environment.ts";
import { withFamily } from "../../../src/ops/attention/launch.metal.ts";
import { usually } from "../../support/repeats.ts";
import { seed, someOf } from "../../support/some.ts";
import { alone, sampledSizes, triples } from "./cases.ts";
import { checkCase } from "./run.ts";

const metal = { name: "metal", backend: "metal", path: "fused" } as const;
const cases = [...alone, ...someOf([...triples(12), ...sampledSizes(25)], 12)];

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("attention with scores in registers is correct", () => {
  for (const [at, dtype] of (["float32", "float16", "bfloat16"] as const).entries())
    test(`results agree with the definition, ${dtype}, seed ${seed}`, () => {
      const some = usually(cases, (_, index) => index % 3 === at);
      withFamily("nvidia", () => {
        for (const each of some) checkCase(each, dtype, metal);
      });
    });
});
