/**
 * Runs a kernel on the device that ORCHARD_METAL_DEVICE selects: `[count, steps, scalar]`. `scalar` says how the kernel
 * receives its scalar: as a reference to bytes (`value`) or to a buffer (`buffer`), or as a pointer (`pointer`). Prints
 * what happened as JSON.
 */
import { DeviceBuffer, metalContext, metalKernel, OrchardError } from "../../../../src/index.ts";

const [count = 1000, steps = 3] = Bun.argv.slice(2, 4).map(Number);
const scalar = Bun.argv[4] ?? "value";
const sign = scalar === "pointer" ? "*" : "&";
const kernel = metalKernel({
  name: "saxpy",
  source: `#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  constant float${sign} a [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] += ${scalar === "pointer" ? "a[0]" : "a"} * x[i];
}`,
});

/** Encodes `steps` launches on buffers of `count` elements, and reads the result. */
function run(storage: "shared" | "private", count: number, steps: number): number[] {
  using x = new DeviceBuffer(new Float32Array(count).fill(2), { label: "x", storage });
  using y = new DeviceBuffer(4 * count, { label: "y", storage, zero: true });
  for (let step = 0; step < steps; step++) {
    using held = new DeviceBuffer(new Float32Array([step + 0.5]), { label: "a", storage });
    kernel.encode({ x, y, a: scalar === "buffer" ? held : step + 0.5 }, { grid: count, threadgroup: 64 });
  }
  return [...y.read(Float32Array).subarray(0, 2), ...x.read(Float32Array).subarray(0, 1)];
}

const results: Record<string, unknown> = { device: metalContext().deviceInfo().name };
for (const storage of ["shared", "private"] as const) {
  try {
    results[storage] = run(storage, count, steps);
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    results[storage] = `${error.name}: ${error.message}`;
  }
}
console.log(JSON.stringify(results));
