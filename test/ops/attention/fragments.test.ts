/** The kernels for NVIDIA GPUs, run on the software device, against the formula. */
import { describe, expect, test } from "bun:test";
import { withGpuFamily } from "../../../src/backend/metal/gpu_family.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { usually } from "../../support/repeats.ts";
import { seed, someOf } from "../../support/some.ts";
import { alone, caseOf, optionNames, sampledSizes, triples } from "./cases.ts";
import { checkCase } from "./run.ts";

const metal = { name: "metal", backend: "metal", path: "fused" } as const;
const cases = [...alone, ...someOf([...triples(12), ...sampledSizes(25)], 12)];

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("attention with scores in registers is correct", () => {
  for (const [at, dtype] of (["float32", "float16", "bfloat16"] as const).entries())
    test(`results agree with the definition, ${dtype}, seed ${seed}`, () => {
      const some = usually(cases, (_, index) => index % 3 === at);
      withGpuFamily("nvidia", () => {
        for (const each of some) checkCase(each, dtype, metal);
      });
    });

  // Several threadgroups of queries, and of keys, in the tiles for heads of more than 64 elements.
  test.each(["float16", "bfloat16"] as const)(`wide heads agree with the definition, %s, seed ${seed}`, (dtype) => {
    const wide = optionNames.map((name) => caseOf([name], [1, 140, 70, 128, 100], seed));
    withGpuFamily("nvidia", () => {
      for (const each of someOf(wide, 1)) checkCase(each, dtype, metal);
    });
  });

  /**
   * Returns the result and gradients if `loud` is in the keys and values, or in the queries and the gradient of the
   * result, that the mask excludes.
   */
  function resultsWith(loud: number, side: "keys" | "queries", dim: number, dtype: DType): number[][] {
    const rows = 40;
    const isExcluded = (row: number) => row % 3 === 1;
    const operand = (salt: number, isLoud: boolean) =>
      tensor(
        Array.from({ length: rows * dim }, (_, at) =>
          isLoud && isExcluded(Math.floor(at / dim)) ? loud : Math.sin(at * 7 + salt),
        ),
        { shape: [1, 1, rows, dim], dtype, requiresGrad: true },
      );
    const [ofKeys, ofQueries] = [side === "keys", side === "queries"];
    const operands = [operand(1, ofQueries), operand(2, ofKeys), operand(3, ofKeys)] as const;
    const mask = tensor(
      Array.from({ length: rows }, (_, row) => !isExcluded(row)),
      { shape: ofKeys ? [1, rows] : [rows, 1] },
    );
    const out = flashAttention(...operands, { mask });
    return [out, ...grad(out, operands, { gradOutputs: [operand(4, ofQueries)] })].map((each) =>
      Array.from(each.dataSync(), Number),
    );
  }

  test.each([
    ["keys", 8, "float32"],
    ["queries", 8, "float32"],
    ["keys", 100, "bfloat16"],
    ["queries", 100, "bfloat16"],
    ["queries", 128, "float32"],
  ] as const)("masked NaN and infinity in %s do not change a bit, heads of %i, %s", (side, dim, dtype) => {
    const [quiet, ...others] = withGpuFamily("nvidia", () =>
      withBackend("metal", () =>
        [0, Number.NaN, Infinity, -Infinity].map((loud) => resultsWith(loud, side, dim, dtype)),
      ),
    );
    expect(quiet.flat().every(Number.isFinite)).toBe(true);
    for (const other of others) expect(other).toEqual(quiet);
  });
});
