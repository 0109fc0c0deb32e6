/**
 * Drops tensors in a loop that neither waits nor collects. Prints the number of bytes that it allocated, and the peak
 * of live bytes. It is a separate process, because the collector's limit grows with the heap, which is large after
 * other tests.
 */
import { setBackend } from "../../src/backend/policy.ts";
import { ones } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { mul } from "../../src/ops/elementwise/arithmetic.ts";
import { memory } from "../../src/tensor/usage.ts";

/** How often each action runs, the action, and the bytes that it allocates. */
const kinds = {
  /** Results of operations. */
  results: { count: 4000, make: () => ones([256, 256]), bytes: 4 * 256 * 256 },
  /** Results whose graph is never differentiated: with an operand that is saved, and one that requires a gradient. */
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
