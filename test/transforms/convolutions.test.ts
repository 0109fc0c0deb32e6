/** Convolutions under vmap: weights that differ between examples, and per-sample gradients, in one call. */
import { describe, test } from "bun:test";
import type { Tensor } from "../../src/index.ts";
import * as orchard from "../../src/index.ts";
import { places } from "../linalg/run.ts";
import { Random } from "../ops/samples.ts";
import { seed } from "../support/some.ts";
import { type Call, COUNT, compare } from "./compare.ts";

const { manualSeed, randn, square, sum, transforms, withBackend } = orchard;

describe.each(places)("vmap of convolutions, $backend $dtype", ({ backend, dtype }) => {
  const tolerance = dtype === "float64" ? 1e-12 : 1e-5;
  for (const axes of [1, 2, 3] as const)
    test(`convolutions along ${axes} axes agree with single examples for drawn sizes, seed ${seed}`, () => {
      manualSeed(seed);
      const random = new Random(seed + axes);
      const of = (name: string) => (orchard as unknown as Record<string, Call>)[`${name}${axes}d`];
      withBackend(backend, () => {
        for (const isTransposed of [false, true]) {
          const groups = random.integer(1, 2);
          const [channels, outputs] = [groups * random.integer(1, 2), groups * random.integer(1, 2)];
          const kernel = Array.from({ length: axes }, () => random.integer(1, 3));
          const batch = random.integer(1, 2);
          const x = randn([COUNT, batch, channels, ...kernel.map((size) => size + random.integer(0, 3))], { dtype });
          const [first, second] = isTransposed ? [channels, outputs] : [outputs, channels];
          const weights = randn([COUNT, first, second / groups, ...kernel], { dtype });
          const [weight, images] = [weights.select(0, 1), x.select(0, 1)];
          const call = of(isTransposed ? "convTranspose" : "conv") as (...given: unknown[]) => Tensor;
          const options = { groups, stride: random.integer(1, 2), padding: isTransposed ? 0 : random.integer(0, 1) };
          const f: Call = (own, input) => call(input, own, options);
          const gradient = transforms.grad((own: Tensor, input: Tensor) => sum(square(f(own, input))) as Tensor);
          compare(f, [weights, x], [0, 0], tolerance);
          compare(f, [weights, images], [0, null], tolerance);
          compare(gradient as Call, [weight, x], [null, 0], tolerance);
          compare(gradient as Call, [weights, x], [0, 0], tolerance);
          const pairs = (own: Tensor): Tensor => transforms.vmap((input: Tensor) => f(own, input))(x);
          compare(pairs as Call, [weights], [0], tolerance);
        }
      });
    });
});
