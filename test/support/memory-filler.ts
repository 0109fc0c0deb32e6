/**
 * A program: creates tensors of a given size on backends, and keeps them, until there is an error. It prints the error,
 * the tensors created, and whether it can continue. The third argument leaves pages unwritten.
 */
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { OrchardError } from "../../src/core/errors.ts";
import { empty, full, ones, type Tensor } from "../../src/index.ts";
import { memory } from "../../src/tensor/usage.ts";

const [backends = "", bytes = "", unwritten] = process.argv.slice(2);
const names = backends.split(",") as BackendName[];
const kept: Tensor[] = [];
const shape = [Number(bytes) / 4];
const make = () => (unwritten ? empty(shape) : full(shape, 1, { dtype: "float32" }));
let error: unknown;
try {
  // on each of the backends in turn
  for (;;) kept.push(withBackend(names[kept.length % names.length], make));
} catch (thrown) {
  error = thrown;
}
const made = kept.length * Number(bytes);
const { host, metal } = memory();
for (const tensor of kept.splice(0)) tensor.dispose();
const after = names.map((name) =>
  withBackend(name, () =>
    ones([1 << 18])
      .sum()
      .item(),
  ),
);
console.log(
  JSON.stringify({
    name: error instanceof OrchardError ? error.name : String(error),
    code: error instanceof OrchardError ? error.code : "",
    message: error instanceof Error ? error.message : "",
    made,
    live: host.liveBytes + metal.liveBytes,
    after,
  }),
);
