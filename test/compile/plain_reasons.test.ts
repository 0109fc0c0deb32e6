/** If a check stops a replay, the call runs plainly and throws its error, and `explain()` has the reason. */
import { expect, test } from "bun:test";
import { compile, embedding, ones, type Tensor, tensor, withBackend } from "../../src/index.ts";

test("an index out of range in a replay is the plain call's error", () =>
  withBackend("cpu", () => {
    const rows = ones([4, 3]);
    const sum = compile((index: Tensor) => embedding(index as Tensor<"int64">, rows).sum(), { state: [rows] });
    for (const at of [0n, 1n, 2n]) expect(sum(tensor([at, 3n])).item()).toBe(6);
    expect(() => sum(tensor([9n, 0n]))).toThrow("[embedding] expected indices of 0 to 3, got 9 at [0]");
    expect(sum(tensor([0n, 1n])).item()).toBe(6);
    expect(sum.explain()).toContain("1 call plain: [compile] expected indices of at least 0 and less than 4, got 9");
  }));
