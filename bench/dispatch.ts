// Measures a dispatch from TypeScript: encoding only, and until the device has run it. The kernel is empty, so all of
// the time is overhead.
import { DeviceBuffer, MetalContext, metalKernel } from "../src/index.ts";
import { interleaved, table } from "./support/measure.ts";

const source = `#include <metal_stdlib>
kernel void touch(device float* x [[buffer(0)]], constant uint& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i >= n) x[i] = 0;
}`;

const dispatches = 1000;
using context = new MetalContext({ batchOperations: 40 });
using kernel = metalKernel({ name: "touch", source, context });
using x = new DeviceBuffer(4096, { context, zero: true });

const encode = () => {
  for (let count = 0; count < dispatches; count++) kernel.encode({ x, n: 64 }, { grid: 32, threadgroup: 32 });
};

/** Encoding only: the device runs later, and the time until it is done is not counted. */
const encoded: number[] = [];
const measured = interleaved({
  "encoded and run": () => {
    const started = performance.now();
    encode();
    encoded.push(performance.now() - started);
    context.wait();
  },
  "one at a time, each waited for": () => {
    for (let count = 0; count < dispatches; count++) {
      kernel.encode({ x, n: 64 }, { grid: 32, threadgroup: 32 });
      context.wait();
    }
  },
  "run() with an array in and out": () => {
    for (let count = 0; count < dispatches; count++)
      kernel.run({ x: new Float32Array(64), n: 64 }, { grid: 32, threadgroup: 32 });
  },
});
const middle = encoded.sort((a, b) => a - b)[encoded.length >> 1] as number;
const rows = [{ name: "encoded only", median: middle }, ...measured].map(({ name, median }) => [
  name,
  ((median / dispatches) * 1000).toFixed(2),
]);

console.log(
  `A dispatch from TypeScript on ${context.deviceInfo().name} (microseconds, medians of 9 rounds of ${dispatches})`,
);
console.log(table(["", "µs"], rows));
