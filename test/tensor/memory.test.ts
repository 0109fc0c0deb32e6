/** When a tensor's memory is released: by reference count, by scope, by collection; and the figures of `memory()`. */
import { beforeEach, describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { setBackend, withBackend } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { ones, zeros } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { add, mul } from "../../src/ops/elementwise/arithmetic.ts";
import { exp } from "../../src/ops/elementwise/exponential.ts";
import { backward, detach } from "../../src/ops/gradient/backward.ts";
import { sum } from "../../src/ops/reduction/sum.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { keep, tidy } from "../../src/tensor/tidy.ts";
import { memory, resetPeakMemory } from "../../src/tensor/usage.ts";
import { collectGarbage } from "../support/garbage.ts";

const SIDE = 256;
const BYTES = 4 * SIDE * SIDE;
const block = () => ones([SIDE, SIDE]);
const live = () => memory().host.liveBytes;

beforeEach(async () => {
  setBackend("cpu");
  block().dispose(); // loads the dylib
  await collectGarbage(); // collects other tests' garbage now, not while a test waits
});

describe("a storage counts its tensors", () => {
  test("memory is released at once with the last tensor of a storage", () => {
    const before = live();
    const x = block();
    const views = [transpose(x, 0, 1), reshape(x, [SIDE * SIDE]), detach(x)];
    expect(live()).toBe(before + BYTES);
    x.dispose();
    views[0].dispose();
    views[1].dispose();
    expect(views[2].dataSync()[0]).toBe(1);
    views[2].dispose();
    expect([x.storage.isReleased, live()]).toEqual([true, before]);
  });

  test("using ends with the block, also after an error", () => {
    const before = live();
    let seen: Tensor | undefined;
    const body = () => {
      using x = block();
      using y = exp(x);
      seen = y;
      expect(live()).toBe(before + 2 * BYTES);
      throw new Error("inside");
    };
    expect(body).toThrow("inside");
    expect([seen!.isDisposed, live()]).toEqual([true, before]);
  });

  test("dispose() twice counts once, and does not affect views", () => {
    const x = block();
    const view = reshape(x, [SIDE * SIDE]);
    x.dispose();
    x.dispose();
    expect(view.dataSync()[0]).toBe(1);
    view.dispose();
  });
});

describe("tidy releases tensors that were created in it", () => {
  test("tidy keeps what it returns, at any depth", () => {
    const before = live();
    const result = tidy(() => {
      const [a, b, c, d, e] = [block(), block(), block(), block(), block()] as const;
      add(a, b);
      return { list: [c, { deep: d }], map: new Map([["e", e]]), number: 1 };
    });
    expect(live()).toBe(before + 3 * BYTES);
    expect(result.map.get("e")!.dataSync()[0]).toBe(1);
    for (const one of [result.list[0], (result.list[1] as { deep: Tensor }).deep, result.map.get("e")!])
      (one as Tensor).dispose();
    expect(live()).toBe(before);
  });

  test("a view that tidy returns keeps its memory, though its base tensor is released", () => {
    const before = live();
    const view = tidy(() => transpose(exp(block()), 0, 1));
    expect([view.dataSync()[5], live()]).toEqual([Math.fround(Math.E), before + BYTES]);
    view.dispose();
  });

  test("of nested scopes, the outer one tracks what the inner one returns", () => {
    const before = live();
    let middle: Tensor | undefined;
    const outer = tidy(() => {
      middle = tidy(() => exp(block()));
      expect([middle.isDisposed, live()]).toEqual([false, before + BYTES]);
      return add(middle, 1);
    });
    expect([middle!.isDisposed, live()]).toEqual([true, before + BYTES]);
    outer.dispose();
  });

  test("tidy releases after an error, thrown or rejected", async () => {
    const before = live();
    expect(() =>
      tidy(() => {
        block();
        throw new Error("inside");
      }),
    ).toThrow("inside");
    expect(live()).toBe(before);
    const later = tidy(async () => {
      block();
      await Bun.sleep(1);
      block();
      throw new Error("later");
    });
    await expect(later).rejects.toThrow("later");
    expect(live()).toBe(before);
  });

  test("tidy applies across awaits, for its body alone", async () => {
    const before = live();
    const made: Record<string, Tensor> = {};
    const work = async (name: string, pause: number) => {
      made[name] = block();
      await Bun.sleep(pause);
      return exp(made[name]);
    };
    const [first, second] = [tidy(() => work("first", 5)), tidy(() => work("second", 1))];
    const outside = block(); // created while both functions wait
    const [x, y] = [await first, await second];
    expect([made["first"].isDisposed, made["second"].isDisposed, outside.isDisposed]).toEqual([true, true, false]);
    expect([x.isDisposed, y.isDisposed, live()]).toEqual([false, false, before + 3 * BYTES]);
    for (const one of [x, y, outside]) one.dispose();
  });

  test("tidy keeps kept tensors, parameters and gradients", () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const [kept, parameter, plain] = tidy(() => {
      const made = [keep(mul(w, 1)), zeros([2], { requiresGrad: true }), mul(w, 3)] as const;
      backward(sum(mul(w, w)));
      return made.map((one) => () => one); // hidden from tidy
    }) as [() => Tensor, () => Tensor, () => Tensor];
    expect([kept().isDisposed, parameter().isDisposed, plain().isDisposed]).toEqual([false, false, true]);
    expect(w.grad!.toArray()).toEqual([2, 4]);
  });

  test("tensors that a backward pass needs are kept until then", () => {
    const x = ones([SIDE, SIDE], { requiresGrad: true });
    const before = live();
    const loss = tidy(() => sum(exp(mul(x, x))));
    expect(live()).toBeGreaterThan(before);
    backward(loss);
    expect(x.grad!.dataSync()[0]).toBeCloseTo(2 * Math.E, 5);
    expect(live()).toBe(before + BYTES); // the gradient
  });
});

describe("memory() counts what is allocated", () => {
  test("memory() counts live bytes, blocks and the peak since its reset, by backend", () => {
    const before = memory().host;
    const [a, b] = [block(), block()];
    expect(memory().host).toMatchObject({ liveBytes: before.liveBytes + 2 * BYTES, blocks: before.blocks + 2 });
    b.dispose();
    expect(memory().host.peakBytes).toBeGreaterThanOrEqual(before.liveBytes + 2 * BYTES);
    resetPeakMemory();
    expect(memory().host.peakBytes).toBe(before.liveBytes + BYTES);
    a.dispose();
    expect(memory().host.peakBytes).toBe(before.liveBytes + BYTES);
  });

  test.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))(
    "memory() counts Metal's buffers separately, and none once it is closed",
    () => {
      withBackend("metal", () => {
        metalContext().wait();
        const before = memory();
        const x = block();
        expect(memory().metal.liveBytes).toBe(before.metal.liveBytes + BYTES);
        expect(memory().host.liveBytes).toBe(before.host.liveBytes);
        x.dispose();
        metalContext().close();
        expect(memory().metal).toMatchObject({ liveBytes: 0, blocks: 0 });
      });
    },
  );
});
