// A custom kernel, end to end: heat spreads over a plate. Then a kernel with a data race, which the checker
// explains.
//
//   bun examples/kernel.ts [heat.svg]
import { DeviceBuffer, metalContext, metalKernel } from "../src/index.ts";
import { imageOf, save } from "./picture.ts";

const [path] = process.argv.slice(2);

const width = 96;
const height = 40;
const steps = 400;

const heatSource = `
#include <metal_stdlib>
using namespace metal;

// One explicit step of the heat equation u' = c (u_xx + u_yy); the plate's edge keeps its temperature.
kernel void heat(device const float* before [[buffer(0)]],
                 device float* after [[buffer(1)]],
                 constant float& c [[buffer(2)]],
                 uint2 at [[thread_position_in_grid]],
                 uint2 size [[threads_per_grid]]) {
  uint i = at.y * size.x + at.x;
  float u = before[i];
  if (at.x > 0 && at.y > 0 && at.x < size.x - 1 && at.y < size.y - 1) {
    u += c * (before[i - 1] + before[i + 1] + before[i - size.x] + before[i + size.x] - 4.0f * u);
  }
  after[i] = u;
}
`;

// Each thread adds the next thread's value to its value. Without a barrier this is a data race.
const racySource = `
#include <metal_stdlib>
using namespace metal;

kernel void pair_sums(device const float* x [[buffer(0)]],
                      device float* sums [[buffer(1)]],
                      uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  /* barrier */
  sums[t] = tile[t] + tile[(t + 1) % 64];
}
`;
const fixedSource = racySource.replace("/* barrier */", "threadgroup_barrier(mem_flags::mem_threadgroup);");

/** A cold plate with two hot spots. */
function plate(): Float32Array {
  const spots = [
    { x: 24, y: 12, radius: 6, heat: 1 },
    { x: 70, y: 26, radius: 9, heat: 0.8 },
  ];
  return Float32Array.from({ length: width * height }, (_, i) => {
    const [x, y] = [i % width, Math.floor(i / width)];
    return spots.reduce(
      (sum, spot) => sum + (Math.hypot(x - spot.x, 2 * (y - spot.y)) < spot.radius ? spot.heat : 0),
      0,
    );
  });
}

/** The same computation in float64 and plain TypeScript, as a reference. */
function heatInFloat64(start: Float32Array, c: number): Float64Array {
  let before = Float64Array.from(start);
  for (let step = 0; step < steps; step++) {
    const after = before.slice();
    for (let y = 1; y < height - 1; y++) {
      for (let x = 1; x < width - 1; x++) {
        const i = y * width + x;
        const at = (j: number) => before[j] as number;
        after[i] = at(i) + c * (at(i - 1) + at(i + 1) + at(i - width) + at(i + width) - 4 * at(i));
      }
    }
    before = after;
  }
  return before;
}

function draw(temperatures: Float32Array): string {
  const shades = " ·:-=+*#%@";
  const rows = Array.from({ length: height / 2 }, (_, row) =>
    Array.from(
      temperatures.subarray(2 * row * width, (2 * row + 1) * width),
      (t) => shades[Math.min(9, Math.floor(t * 24))] ?? " ",
    ).join(""),
  );
  return rows.map((row) => `  │${row}│`).join("\n");
}

/** The plate in shades from white through orange to black, ten pixels per cell. */
function picture(temperatures: Float32Array): string {
  const shades = ["#fff", "#fef3c7", "#fde68a", "#fcd34d", "#fbbf24", "#f59e0b", "#ea580c", "#c2410c", "#7c2d12"];
  const colors = Array.from(temperatures, (t) => shades[Math.min(shades.length - 1, Math.floor(t * 100))]);
  const size = `viewBox="0 0 ${10 * width} ${10 * height}" width="${10 * width}" height="${10 * height}"`;
  const image = imageOf(colors, width, 10);
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n<title>Heat on a plate</title>\n${image}\n</svg>\n`;
}

async function demonstrateHeat(): Promise<void> {
  const c = Math.fround(0.2);
  using heat = metalKernel({ name: "heat", source: heatSource });
  using a = new DeviceBuffer(plate(), { label: "plate a" });
  using b = new DeviceBuffer(a.byteLength, { label: "plate b", zero: true });
  const started = performance.now();
  for (let step = 0; step < steps; step++) {
    const [before, after] = step % 2 === 0 ? [a, b] : [b, a];
    heat.encode({ before, after, c }, { grid: [width, height], threadgroup: [16, 16] });
  }
  const result = a.read(Float32Array);
  const milliseconds = performance.now() - started;
  const exact = heatInFloat64(plate(), c);
  const error = Math.max(...result.map((value, i) => Math.abs(value - (exact[i] as number))));

  console.log(
    `\nHeat on a plate of ${width} × ${height} after ${steps} steps, ${milliseconds.toFixed(0)} ms:\n${draw(result)}`,
  );
  console.log(`  largest difference from float64: ${error.toExponential(1)}`);
  const { counters } = heat.run(
    { before: a, after: b, c },
    { grid: [width, height], threadgroup: [16, 16], counters: true },
  );
  if (counters) {
    const cells = width * height;
    console.log(`  one step: ${counters.threads} threads in ${counters.threadgroups} threadgroups, each cell`);
    const [read, written] = [counters.device_bytes_read / cells, counters.device_bytes_written / cells];
    console.log(
      `  ${read.toFixed(1)} bytes read and ${written.toFixed(1)} written; ` +
        `${counters.cache_lines_read} cache lines of 128 bytes read`,
    );
  }
  if (path) await save(path, picture(result));
  if (!(error < 1e-5)) throw new Error(`the result is off by ${error}`);
}

function demonstrateChecker(): void {
  const context = metalContext();
  if (!context.deviceInfo().isSoftware) {
    console.log("\nThe checker is part of the software device; on Linux this example also shows a data race.");
    return;
  }
  context.configure("check", true);
  const x = Float32Array.from({ length: 64 }, (_, i) => i);
  for (const [what, source] of [
    ["The same sums without a barrier", racySource],
    ["With the barrier", fixedSource],
  ] as const) {
    using kernel = metalKernel({ name: "pair_sums", source });
    context.report({ clear: true });
    kernel.run({ x, sums: new Float32Array(64) }, { grid: 64, threadgroup: 64 });
    const { findings } = context.report({ clear: true });
    console.log(`\n${what}, under the checker: ${findings.length === 0 ? "no findings" : ""}`);
    for (const { kind, message } of findings) console.log(`  ${kind}: ${message}`);
  }
  context.configure("check", false);
}

const { name, system } = metalContext().deviceInfo();
console.log(`Orchard on ${name} (${system})`);
await demonstrateHeat();
demonstrateChecker();
