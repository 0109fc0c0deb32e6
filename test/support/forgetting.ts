/**
 * Forgets tensors in a loop that neither waits nor collects. Prints the bytes that it made, and the most that were live
 * at once. It is a process of its own, since the collector lets garbage grow with all that a process holds: after other
 * tests that is a lot.
 */
import { setBackend } from "../../src/backend/policy.ts";
import { ones } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { mul } from "../../src/ops/elementwise/arithmetic.ts";
import { memory } from "../../src/tensor/usage.ts";

/** How often each is done, what is done, and how many bytes it makes. */
const kinds = {
  /** Results of operations. */
  results: { count: 4000, make: () => ones([256, 256]), bytes: 4 * 256 * 256 },
  /** Results whose graph nobody passes: with an operand that is saved, and one that wants a gradient. */
  graphs: {
    count: 2000,
    make: () => mul(tensor(new Float32Array(2 ** 14), { requiresGrad: true }), tensor(new Float32Array(2 ** 14))),
    bytes: 3 * 2 ** 16,
  },
} as const;

setBackend("cpu");
const { count, make, bytes } = kinds[process.argv[2] as keyof typeof kinds];
for (let made = 0; made < count; made++) make();
console.log(JSON.stringify({ made: count * bytes, most: memory().host.peakBytes }));
