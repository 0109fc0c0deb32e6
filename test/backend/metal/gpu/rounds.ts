/**
 * Launches the kernel of program.ts in rounds, with a command buffer per round. The argument has each round's launches
 * as JSON: the number of the buffer to read, the scalar, and the threads.
 */
import { DeviceBuffer, metalContext, metalKernel } from "../../../../src/index.ts";

export interface DrawnLaunch {
  readonly buffer: number;
  readonly scalar: number;
  readonly threads: number;
}

/** The first element of each buffer that may be read. */
export const firstElements = [10, 20, 30];

if (import.meta.main) {
  const kernel = metalKernel({
    name: "saxpy",
    source: `#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant float& a [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] += a * x[i];
}`,
  });
  const buffers = firstElements.map((first) => new DeviceBuffer(new Float32Array(256).fill(first)));
  const y = new DeviceBuffer(1024, { zero: true });
  const rounds = JSON.parse(Bun.argv[2] ?? "[]") as DrawnLaunch[][];
  for (const round of rounds) {
    for (const { buffer, scalar, threads } of round)
      kernel.encode({ x: buffers[buffer]!, y, a: scalar }, { grid: threads, threadgroup: 64 });
    metalContext().wait();
  }
  console.log("{}");
}
