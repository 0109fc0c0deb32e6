/**
 * A program that dispatches a kernel 20,000 times with new arrays, and prints resident memory after each thousand of
 * them.
 */
import { MetalContext, metalKernel } from "../../src/index.ts";

const source = `#include <metal_stdlib>
kernel void add(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
  y[i] += a * x[i];
}`;

const context = new MetalContext();
const kernel = metalKernel({ name: "add", source, context });
const x = new Float32Array(4096).fill(1);
const resident: number[] = [];
for (let thousand = 0; thousand < 20; thousand++) {
  for (let step = 0; step < 1000; step++) kernel.run({ x, y: x, a: 2 }, { grid: 64 });
  Bun.gc(true);
  resident.push(process.memoryUsage.rss());
}
const { liveBuffers, dispatches } = context.statistics();
console.log(JSON.stringify({ resident, liveBuffers, dispatches }));
