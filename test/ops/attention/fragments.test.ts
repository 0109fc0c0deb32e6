/** The kernels for NVIDIA GPUs, run on the software device, against the formula. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { withFamily } from "../../../src/ops/attention/launch.metal.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
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

  /** Returns the result and gradients if `loud` is in the keys and values that the mask excludes. */
  function resultsWith(loud: number): number[][] {
    const [rows, dim] = [20, 8];
    const operand = (salt: number, excluded?: number) =>
      tensor(
        Array.from({ length: rows * dim }, (_, at) =>
          excluded !== undefined && Math.floor(at / dim) % 3 === 1 ? excluded : Math.sin(at * 7 + salt),
        ),
        { shape: [1, 1, rows, dim], requiresGrad: true },
      );
    const operands = [operand(1), operand(2, loud), operand(3, loud)] as const;
    const mask = tensor(Array.from({ length: rows }, (_, key) => key % 3 !== 1));
    const out = flashAttention(...operands, { mask });
    return [out, ...grad(out, operands, { gradOutputs: [operand(4)] })].map((each) =>
      Array.from(each.dataSync(), Number),
    );
  }

  test("masked NaN and infinity do not change a bit", () => {
    const [quiet, ...others] = withFamily("nvidia", () =>
      withBackend("metal", () => [0, Number.NaN, Infinity, -Infinity].map(resultsWith)),
    );
    expect(quiet.flat().every(Number.isFinite)).toBe(true);
    for (const other of others) expect(other).toEqual(quiet);
  });
});
