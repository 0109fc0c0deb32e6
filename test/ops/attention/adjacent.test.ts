/**
 * Tests q, k and v that are slices of one tensor: their gradients are slices of its gradient, with the same bits as for
 * three tensors, and without copies.
 */
import { describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { clone, mul, randn, split, sum, transpose, unflatten } from "../../../src/ops/index.ts";
import { Generator } from "../../../src/random/generator.ts";
import { isRowMajor } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const [B, T, D] = [2, 7, 8] as const;
const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));
const bitsOf = (x: Tensor): string => Buffer.from((x.dataSync() as Float32Array).buffer.slice(0)).toString("hex");

interface Cut {
  /** The numbers of heads of q, k and v. */
  readonly heads: readonly [number, number, number];
  /** The order of the parts in the tensor that is cut. */
  readonly order: readonly [q: number, k: number, v: number];
}

/** The parts of `x` [B, T, all heads · D] as heads. */
function cut(x: Tensor, { heads, order }: Cut): [Tensor, Tensor, Tensor] {
  const sizes = heads.map((_, at) => heads[order.indexOf(at)] * D);
  const parts = split(x, sizes, { dim: 2 }).map((part) => transpose(unflatten(part, 2, [-1, D]), 1, 2));
  return order.map((at) => parts[at]) as [Tensor, Tensor, Tensor];
}

/** Returns the gradient of the tensor that is cut, and the copying operations that ran for it. */
function gradientOf(given: Cut, make: (x: Tensor) => Tensor) {
  const generator = new Generator(3);
  const leaf = randn([B, T, given.heads.reduce((total, own) => total + own) * D], { generator, requiresGrad: true });
  const x = mul(leaf, 1) as Tensor;
  const [q, k, v] = cut(x, given).map(make) as [Tensor, Tensor, Tensor];
  const out = flashAttention(q, k, v, { causal: true });
  const loss = sum(mul(out, randn(out.shape, { generator })));
  resetCodepaths();
  const [gradient] = grad([loss], [x]) as [Tensor];
  const copies = codepaths().filter(({ operation }) => operation === "copy");
  return { gradient, copies: copies.reduce((total, { calls }) => total + calls, 0) };
}

const cuts: Readonly<Record<string, Cut>> = {
  "as many heads each": { heads: [4, 4, 4], order: [0, 1, 2] },
  "fewer heads of keys and values": { heads: [4, 2, 2], order: [0, 1, 2] },
};

describe.each(tested)("attention on parts of one tensor, on %s", (backend) => {
  test.each(Object.keys(cuts))("%s need no copy, and have the same bits as separate tensors", (name) => {
    on(backend, () => {
      const together = gradientOf(cuts[name], (x) => x);
      const apart = gradientOf(cuts[name], (x) => transpose(clone(transpose(x, 1, 2)), 1, 2));
      expect(bitsOf(together.gradient)).toBe(bitsOf(apart.gradient));
      expect(together.copies).toBe(0);
      expect(apart.copies).toBeGreaterThan(0);
      expect(isRowMajor(together.gradient.shape, together.gradient.strides)).toBe(true);
    });
  });

  test("gradients in another order are copied into place", () => {
    on(backend, () => {
      const other: Cut = { heads: [4, 4, 4], order: [2, 0, 1] };
      const [own, apart] = [(x: Tensor) => x, (x: Tensor) => transpose(clone(transpose(x, 1, 2)), 1, 2)].map((make) =>
        gradientOf(other, make),
      );
      expect(bitsOf(own.gradient)).toBe(bitsOf(apart.gradient));
    });
  });
});
