/** Comparisons of vmap with calls of single examples. */
import { expect } from "bun:test";
import type { Tensor } from "../../src/index.ts";
import * as orchard from "../../src/index.ts";

const { abs, amax, stack, sub, transforms } = orchard;

export type Call = (...values: Tensor[]) => Tensor;
/** The number of examples. */
export const COUNT = 3;

/** Compares a function of a batch with calls of single examples. No operation may run once per example. */
export function compare(f: Call, values: readonly Tensor[], inDims: readonly (0 | null)[], tolerance: number): void {
  const lines: unknown[] = [];
  const { warn } = console;
  console.warn = (line: unknown) => lines.push(line);
  try {
    const got = transforms.vmap(f, { inDims: [...inDims] })(...values) as Tensor;
    const each = (at: number) => f(...values.map((x, index) => (inDims[index] === 0 ? x.select(0, at) : x)));
    const wanted = stack(Array.from({ length: COUNT }, (_, at) => each(at)));
    expect(got.shape).toEqual(wanted.shape);
    const scale = Math.max(1, Number(amax(abs(wanted) as Tensor).item()));
    expect(Number(amax(abs(sub(got, wanted)) as Tensor).item()) / scale).toBeLessThan(tolerance);
  } finally {
    console.warn = warn;
  }
  expect(lines).toEqual([]);
}
