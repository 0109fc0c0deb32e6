/** Normalizations under vmap, with vectors that differ between examples, and their gradients of both orders. */
import { describe, test } from "bun:test";
import type { Tensor } from "../../src/index.ts";
import * as orchard from "../../src/index.ts";
import { places } from "../linalg/run.ts";
import { type Call, COUNT, compare } from "./compare.ts";

const { layerNorm, manualSeed, mul, randn, rmsNorm, square, sum, transforms, withBackend } = orchard;

const norms: Readonly<Record<string, (weight: Tensor, bias: Tensor, x: Tensor) => Tensor>> = {
  layerNorm: (weight, bias, x) => layerNorm(x, { weight, bias }),
  rmsNorm: (weight, _bias, x) => rmsNorm(x, { weight }),
};

describe.each(places)("vmap of norms, $backend $dtype", ({ backend, dtype }) => {
  const tolerance = dtype === "float64" ? 1e-12 : 3e-5;
  for (const [name, norm] of Object.entries(norms))
    test(name, () => {
      manualSeed(4);
      withBackend(backend, () => {
        for (const shape of [[6], [4, 6], [2, 3, 6]]) {
          const x = randn([COUNT, ...shape], { dtype });
          const vectors = [0, 1].map(() => randn([COUNT, 6], { dtype })) as [Tensor, Tensor];
          const cotangent = randn(shape, { dtype });
          const loss = (...given: [Tensor, Tensor, Tensor]) => sum(mul(norm(...given), cotangent)) as Tensor;
          for (const inDims of [
            [0, 0, 0],
            [null, null, 0],
            [0, 0, null],
            [0, null, 0],
          ] as const) {
            const values = [...vectors, x].map((each, at) => (inDims[at] === null ? each.select(0, 1) : each));
            compare(norm as Call, values, inDims, tolerance);
            for (const at of name === "rmsNorm" ? [0, 2] : [0, 1, 2]) {
              const gradient = transforms.grad(loss, at) as (...given: [Tensor, Tensor, Tensor]) => Tensor;
              const second = transforms.grad((...given: [Tensor, Tensor, Tensor]) => {
                return sum(square(gradient(...given))) as Tensor;
              }, 2);
              compare(gradient as Call, values, inDims, tolerance);
              if (at !== 1) compare(second as Call, values, inDims, 30 * tolerance);
            }
          }
        }
      });
    });
});
