/** What the forward saved goes back as the backward pass goes by, and no later. */
import { beforeEach, describe, expect, test } from "bun:test";
import { backward } from "../../src/autograd/backward.ts";
import { setBackend } from "../../src/backend/policy.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { mul } from "../../src/ops/elementwise/binary.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { memory } from "../../src/tensor/usage.ts";

const COUNT = 2 ** 15;
const BYTES = 4 * COUNT;
const block = () => tensor(new Float32Array(COUNT).fill(1));
const live = () => memory().host.liveBytes;

beforeEach(() => {
  setBackend("cpu");
  Bun.gc(true);
});

/** A chain of three products with factors that only the graph still holds. */
function chain(): { x: Tensor; y: Tensor; factors: Tensor[] } {
  const x = tensor(new Float32Array(COUNT).fill(1), { requiresGrad: true });
  const factors = [block(), block(), block()];
  let y: Tensor = x;
  for (const factor of factors) y = mul(y, factor);
  return { x, y, factors };
}

describe("saved tensors", () => {
  test("outlive dispose() and go back one after the other, the latest first", () => {
    const { x, y, factors } = chain();
    const before = live();
    for (const factor of factors) factor.dispose();
    expect(live()).toBe(before); // the graph needs them
    const released = () => factors.map(({ storage }) => storage.isReleased);
    const seen: boolean[][] = [];
    y.registerHook(() => void seen.push(released()));
    x.registerHook(() => void seen.push(released()));
    backward(y, block());
    expect(seen).toEqual([
      [false, false, false],
      [true, true, true],
    ]);
    expect(before - live()).toBeGreaterThanOrEqual(3 * BYTES - 2 * BYTES); // a gradient and its seed came
  });

  test("are freed in the middle of the pass, not at its end", () => {
    const { y, factors } = chain();
    for (const factor of factors) factor.dispose();
    const between = y.edge!.node.targets[0] as NonNullable<Tensor["edge"]>;
    let seen: boolean[] = [];
    between.node.hooksOf(0).push(() => {
      seen = factors.map(({ storage }) => storage.isReleased);
      return undefined;
    });
    backward(y, block());
    expect(seen).toEqual([false, false, true]);
  });

  test("stay with retainGraph, and go with the pass after it", () => {
    const { y, factors } = chain();
    for (const factor of factors) factor.dispose();
    backward(y, block(), { retainGraph: true });
    expect(factors.some(({ storage }) => storage.isReleased)).toBe(false);
    backward(y, block());
    expect(factors.every(({ storage }) => storage.isReleased)).toBe(true);
  });

  test("a graph that nobody passes is collected with its result, in a loop that never waits", () => {
    const least = live();
    let most = 0;
    for (let step = 0; step < 200; step++) {
      const x = tensor(new Float32Array(2 ** 14), { requiresGrad: true });
      mul(x, tensor(new Float32Array(2 ** 14)));
      most = Math.max(most, live());
    }
    Bun.gc(true);
    expect(live() - least).toBeLessThan(8 * 2 ** 16);
    expect(most).toBeGreaterThan(0);
  });
});
