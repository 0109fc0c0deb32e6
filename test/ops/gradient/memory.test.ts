/** Tensors that the forward saved are freed during the backward pass, and no later. */
import { beforeEach, describe, expect, test } from "bun:test";
import { edgeOf, type GraphEdge } from "../../../src/autograd/node.ts";
import { setBackend } from "../../../src/backend/policy.ts";
import { clone } from "../../../src/ops/copy/copy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { mul, neg } from "../../../src/ops/elementwise/arithmetic.ts";
import { backward, grad } from "../../../src/ops/gradient/backward.ts";
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch users know it by this name
import { Function, type FunctionContext } from "../../../src/ops/gradient/function.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { keep } from "../../../src/tensor/tidy.ts";
import { memory } from "../../../src/tensor/usage.ts";

const COUNT = 2 ** 15;
const BYTES = 4 * COUNT;
const block = () => tensor(new Float32Array(COUNT).fill(1));
const live = () => memory().host.liveBytes;

beforeEach(() => {
  setBackend("cpu");
  Bun.gc(true);
});

/** A chain of three products with factors that only the graph still refers to. */
function chain(): { x: Tensor; y: Tensor; factors: Tensor[] } {
  const x = tensor(new Float32Array(COUNT).fill(1), { requiresGrad: true });
  const factors = [block(), block(), block()];
  let y: Tensor = x;
  for (const factor of factors) y = mul(y, factor);
  return { x, y, factors };
}

test("intermediate gradients are freed once they are used: a long chain holds one at a time", () => {
  const seen: number[] = [];
  class Probe extends Function {
    static forward(_: FunctionContext, x: Tensor): Tensor {
      return clone(x);
    }
    static backward(_: FunctionContext, gradient: Tensor | null) {
      seen.push(live());
      return gradient;
    }
  }
  const x = tensor(new Float32Array(COUNT).fill(1), { requiresGrad: true });
  const made: Tensor[] = [x];
  for (let link = 0; link < 8; link++) made.push(Probe.apply(neg(made.at(-1)!)));
  const seed = block();
  const before = live();
  backward(made.at(-1)!, seed);
  expect(seen.map((bytes) => bytes <= before + BYTES)).toEqual(new Array(8).fill(true));
  expect(live()).toBeLessThanOrEqual(before + BYTES); // only x.grad remains
  expect(seed.isDisposed).toBe(false);
  expect([x.grad!.dataSync()[0], made.length]).toEqual([1, 9]);
});

test("gradients that a caller has seen stay: in a hook, in grad, with keep", () => {
  const [x, seen]: [Tensor, Tensor[]] = [tensor([1, 2], { requiresGrad: true }), []];
  class Stash extends Function {
    static forward(_: FunctionContext, input: Tensor): Tensor {
      return clone(input);
    }
    static backward(_: FunctionContext, gradient: Tensor | null) {
      seen.push(keep(gradient!));
      return mul(gradient!, 2) as Tensor;
    }
  }
  const y = mul(x, 3);
  y.registerHook((gradient) => void seen.push(gradient));
  const z = mul(Stash.apply(y), 5);
  const [ofY] = grad(z, [y], { gradOutputs: [tensor([1, 10])], retainGraph: true });
  backward(z, tensor([1, 10]));
  const all = [...seen, ofY, x.grad!].map((gradient) => Array.from(gradient.dataSync(), Number));
  expect(all).toEqual([
    [5, 50],
    [10, 100],
    [5, 50],
    [10, 100],
    [10, 100],
    [30, 300],
  ]);
});

describe("tensors saved for the backward pass are freed", () => {
  test("saved tensors outlive dispose() and are freed one after the other, the latest first", () => {
    const { x, y, factors } = chain();
    const before = live();
    for (const factor of factors) factor.dispose();
    expect(live()).toBe(before); // the graph needs these tensors
    const released = () => factors.map(({ storage }) => storage.isReleased);
    const seen: boolean[][] = [];
    y.registerHook(() => void seen.push(released()));
    x.registerHook(() => void seen.push(released()));
    backward(y, block());
    expect(seen).toEqual([
      [false, false, false],
      [true, true, true],
    ]);
    expect(before - live()).toBeGreaterThanOrEqual(3 * BYTES - 2 * BYTES); // minus the new gradient and the seed
  });

  test("saved tensors are freed in the middle of the pass, not at its end", () => {
    const { y, factors } = chain();
    for (const factor of factors) factor.dispose();
    const between = edgeOf(y)!.node.targets[0] as GraphEdge;
    let seen: boolean[] = [];
    between.node.hooksOf(0).push(() => {
      seen = factors.map(({ storage }) => storage.isReleased);
      return undefined;
    });
    backward(y, block());
    expect(seen).toEqual([false, false, true]);
  });

  test("saved tensors stay with retainGraph, and are freed by the pass after it", () => {
    const { y, factors } = chain();
    for (const factor of factors) factor.dispose();
    backward(y, block(), { retainGraph: true });
    expect(factors.some(({ storage }) => storage.isReleased)).toBe(false);
    backward(y, block());
    expect(factors.every(({ storage }) => storage.isReleased)).toBe(true);
  });
});
