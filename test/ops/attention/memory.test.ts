/** The peak memory of a forward and a backward pass: operands, result and gradients, and little else. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { backward } from "../../../src/ops/gradient/backward.ts";
import { randn } from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { memory, resetPeakMemory } from "../../../src/tensor/usage.ts";
import { usually } from "../../support/repeats.ts";
import { tested } from "../run.ts";

// Each thread of the cpu backend computes one head, whose sums are float32: the limits allow two of them.
const { native } = cpuLibrary();
beforeAll(() => configure(native, "threads", "2"));
afterAll(() => configure(native, "threads", "auto"));

/**
 * Peak bytes by sequence length, for B = 1, H = 32, D = 64 in float16: eight tensors of N · 4096 bytes, and up to 8 %
 * more.
 */
const limits = { 512: 18e6, 2048: 72e6, 4096: 145e6 } as const;
type Length = keyof typeof limits;
const lengths = usually<Length>([512, 2048, 4096], (length) => length < 4096);
const places = { cpu: "host", metal: "metal" } as const;

const rows = lengths.flatMap((length) =>
  (["cpu", "metal"] as const).filter((backend) => tested.includes(backend)).map((backend) => ({ backend, length })),
);

const dispose = (...tensors: readonly (Tensor | null)[]): void => {
  for (const each of tensors) each?.dispose();
};

/** Peak bytes in a causal forward and backward pass, and live bytes after it, minus those that were live before. */
function measure(backend: keyof typeof places, length: number, dropout: number, kvHeads = 32) {
  const place = places[backend];
  const draw = (requiresGrad: boolean, heads = 32) => randn([1, heads, length, 64], { dtype: "float16", requiresGrad });
  const first = draw(false); // memory that the first call allocates permanently
  first.dataSync();
  first.dispose();
  Bun.gc(true);
  const before = memory()[place].liveBytes;
  const [q, k, v, gradOut] = [draw(true), draw(true, kvHeads), draw(true, kvHeads), draw(false)];
  resetPeakMemory();
  const out = flashAttention(q, k, v, { causal: true, dropout });
  backward(out, gradOut);
  for (const { grad } of [q, k, v]) grad!.dataSync(); // waits for each gradient: one may be in a later command buffer
  const { peakBytes, liveBytes } = memory()[place];
  dispose(q, k, v, gradOut, out, q.grad, k.grad, v.grad);
  return { peak: peakBytes - before, live: liveBytes - before };
}

/**
 * The software device would take minutes for long sequences. Allocations do not depend on what kernels compute or on
 * waiting for them: here they are encoded, committed and completed, and run no thread.
 */
function withoutKernels<Result>(isWanted: boolean, body: () => Result): Result {
  if (!isWanted || !metalContext().isSoftware) return body();
  metalContext().configure("execute", false);
  try {
    return body();
  } finally {
    metalContext().wait();
    metalContext().configure("execute", true);
  }
}

test.each(rows)("the memory for N = $length on $backend is linear", ({ backend, length }) => {
  withStrict(true, () =>
    withBackend(backend, () => {
      const dropout = backend === "cpu" ? 0.1 : 0;
      const { peak, live } = withoutKernels(backend === "metal", () => measure(backend, length, dropout));
      const tensors = 8 * 32 * length * 64 * 2;
      expect(live).toBe(tensors); // log-sum-exp, its low part and Δ are freed
      // The dylib's sums of one head's gradient of q are included.
      if (backend === "cpu") expect(peak - tensors).toBeGreaterThan(4 * length * 64);
      expect(peak).toBeGreaterThan(tensors);
      expect(peak).toBeLessThanOrEqual(limits[length]);
    }),
  );
});

describe.if(tested.includes("metal"))("on metal", () => {
  const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));

  test("allocations are the same whether kernels run or not", () => {
    const peaks = [false, true].map((skip) => onMetal(() => withoutKernels(skip, () => measure("metal", 128, 0.1))));
    expect(peaks[1]).toEqual(peaks[0]);
  });

  test("memory grows with the rows, and with the number of key-value heads: none is expanded", () => {
    const peakOf = (length: number, kvHeads: number) =>
      onMetal(() => withoutKernels(true, () => measure("metal", length, 0.1, kvHeads).peak));
    const row = 64 * 2;
    // q, gradOut, out and gradQ; k, v and their gradients; log-sum-exp, its low part and Δ.
    const wanted = (length: number, kvHeads: number) => length * (4 * 32 * row + 4 * kvHeads * row + 3 * 32 * 4);
    for (const [length, kvHeads] of [
      [1024, 32],
      [2048, 32],
      [4096, 32],
      [1024, 4],
      [4096, 1],
    ] as const)
      expect(peakOf(length, kvHeads) / wanted(length, kvHeads)).toBeCloseTo(1, 2);
  });
});
