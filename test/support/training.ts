/**
 * A program that trains without disposing of anything, and prints its memory use: twenty lines of JSON, and one more
 * after the training, once garbage is collected.
 *
 * Arguments: the backend; the number of steps; `sync` (a loop that never lets the event loop run) or `async`; the sizes
 * of the layers, as `64x128x32`; optionally `private`, for Metal buffers that the CPU can't see.
 */
import { noGrad } from "../../src/autograd/modes.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { setBackend, setStrict } from "../../src/backend/policy.ts";
import { relu } from "../../src/ops/activation/relu.ts";
import { randn } from "../../src/ops/random/randn.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import "../../src/index.ts";
import { isPoint, printMemory, printPoint } from "./memory-point.ts";

const BATCH = 16;
const RATE = 0.01;

const [backend, steps, mode, sizes, storage] = process.argv.slice(2) as [BackendName, string, string, string, string?];
setBackend(backend);
setStrict(true);
if (storage) metalContext().configure("storage", storage);

const [inputs, hidden, outputs] = sizes.split("x").map(Number) as [number, number, number];
const layer = (from: number, to: number): Tensor =>
  randn([from, to])
    .mul(Math.sqrt(2 / from))
    .detach();
const weights = [layer(inputs, hidden), layer(hidden, outputs)];
for (const weight of weights) weight.requiresGrad = true;
const x = randn([BATCH, inputs]);
const wanted = noGrad(() => relu(x.matmul(layer(inputs, hidden))).matmul(layer(hidden, outputs)));

function step(): Tensor {
  const [first, second] = weights as [Tensor, Tensor];
  const error = relu(x.matmul(first)).matmul(second).sub(wanted);
  const loss = error.mul(error).mean();
  loss.backward();
  for (const [index, weight] of weights.entries()) {
    const next = noGrad(() => weight.sub(weight.grad!.mul(RATE)));
    next.requiresGrad = true;
    weights[index] = next;
  }
  return loss;
}

const count = Number(steps);
let last = 0;
for (let index = 1; index <= count; index++) {
  const loss = step();
  const isShown = isPoint(index, count);
  if (mode === "async") last = Number((await loss.data())[0]);
  else if (isShown) last = Number(loss.item());
  if (isShown) printPoint(index, count, last);
}
await Bun.sleep(0);
forgetFinished();
Bun.gc(true);
printMemory(count, last);

/** Metal keeps operands until it has checked which work is done. */
function forgetFinished(): void {
  weights[0].dataSync();
}
