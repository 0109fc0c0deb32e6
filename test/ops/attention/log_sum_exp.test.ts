/** The forward writes its log-sum-exp if a gradient or the caller needs it, and otherwise moves nothing for it. */
import { describe, expect, test } from "bun:test";
import { noGrad } from "../../../src/autograd/modes.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../src/ops/attention/options.ts";
import { tensor } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { checked, testVariants } from "../../linalg/variants.ts";
import { tested } from "../run.ts";
import { Random } from "../samples.ts";

const hasMetal = whyUnavailable("metal") === undefined;

/** Heads of queries and keys; the vector path in one part and in two, and tiles that end inside a SIMD-group's rows. */
const shapes = [
  [1, 90, 40],
  [3, 1100, 8],
  [75, 75, 40],
  [9, 70, 24],
] as const;

function operands(
  [queries, keys, dim]: readonly [number, number, number],
  requiresGrad = false,
): [Tensor, Tensor, Tensor] {
  const random = new Random(queries + keys);
  const draw = (rows: number) =>
    tensor(
      Array.from({ length: 2 * rows * dim }, () => Math.fround(random.next() * 2 - 1)),
      { shape: [1, 2, rows, dim], requiresGrad },
    );
  return [draw(queries), draw(keys), draw(keys)];
}

const attend = (leaves: readonly [Tensor, Tensor, Tensor], options: FlashAttentionOptions = {}): Tensor =>
  flashAttention(...leaves, { ...options, path: "fused", returnLogSumExp: false, returnDropoutMask: false });
const bits = (x: Tensor): string => Buffer.from((x.dataSync() as Float32Array).slice().buffer).toString("hex");

describe.each(tested)("attention on %s has the same bits with and without a log-sum-exp", (backend) => {
  test.each(shapes)(
    "%d queries, %d keys of %d elements have the same output, to the last bit",
    (queries, keys, dim) => {
      const shape = [queries, keys, dim] as const;
      withStrict(true, () =>
        withBackend(backend, () => {
          const sinks = tensor([0.5, -1]);
          for (const options of [{}, { causal: true, sinks }]) {
            const leaves = operands(shape, true);
            const recorded = bits(attend(leaves, options));
            expect(bits(noGrad(() => attend(leaves, options)))).toBe(recorded);
            const { out, logSumExp } = flashAttention(...operands(shape), {
              ...options,
              path: "fused",
              returnLogSumExp: true,
            });
            expect(bits(out)).toBe(recorded);
            expect((logSumExp.dataSync() as Float32Array).every(Number.isFinite)).toBe(true);
          }
        }),
      );
    },
  );
});

describe.if(hasMetal)("attention's forward on metal", () => {
  /** Device bytes that the last of the call's kernels writes. */
  function written(leaves: readonly [Tensor, Tensor, Tensor]): number {
    const context = metalContext();
    context.report({ clear: true });
    context.configure("count", true);
    try {
      withStrict(true, () => withBackend("metal", () => attend(leaves)));
      context.wait();
    } finally {
      context.configure("count", false);
    }
    return context.report({ clear: true }).dispatches.at(-1)!.counters.device_bytes_written;
  }

  test.each(shapes)(
    "%d queries, %d keys of %d elements: the kernel writes only its output, and with a gradient two words per row",
    (queries, keys, dim) => {
      const shape = [queries, keys, dim] as const;
      if (!metalContext().isSoftware) return expect(process.platform).toBe("darwin"); // Apple's device has no counters
      const rows = 2 * queries;
      const make = (requiresGrad: boolean) => withBackend("metal", () => operands(shape, requiresGrad));
      expect(written(make(false))).toBe(rows * dim * 4);
      expect(written(make(true))).toBe(rows * (dim * 4 + 8));
    },
  );

  test("each path agrees with the definition", () => {
    for (const shape of shapes)
      for (const causal of [false, true]) {
        const on = (backend: "metal" | "reference") =>
          withStrict(true, () =>
            withBackend(backend, () => attend(operands(shape), { causal }).dataSync()),
          ) as Float32Array;
        const expected = on("reference");
        for (const [at, value] of checked(() => on("metal")).entries())
          if (!(Math.abs(value - expected[at]) <= 2e-6)) throw new Error(`${at}: ${value}, expected ${expected[at]}`);
      }
  });

  testVariants(import.meta.path, "each path agrees with the definition");
});
