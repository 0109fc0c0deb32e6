// Measures the cost of the checker: each kernel with and without it, in alternating order, on one worker thread. The
// limit is 15 times the plain time. Then it measures the first pipeline of a library file with an empty folder of
// compiled kernels.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import {
  DeviceBuffer,
  MetalContext,
  metalContext,
  metalKernel,
  type RunOptions,
  randn,
  withBackend,
} from "../src/index.ts";
import { interleaved, type Measured, table } from "./support/measure.ts";

const budget = 15;
const head = "#include <metal_stdlib>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n";

interface Case {
  name: string;
  source: string;
  /** Floats in the input and in the output. */
  input: number;
  output: number;
  run: RunOptions;
}

const cases: Case[] = [
  {
    name: "elementwise",
    source: `kernel void elementwise(device const float4* x, device float4* y, uint i [[thread_position_in_grid]]) {
      y[i] = x[i] * 2.0f + 1.0f;
    }`,
    input: 1 << 18,
    output: 1 << 18,
    run: { grid: 1 << 16, threadgroup: 256 },
  },
  {
    name: "reduction",
    source: `kernel void reduction(device const float* x, device float* y, uint i [[thread_position_in_grid]],
                             uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
      threadgroup float tile[256];
      tile[t] = x[i];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint stride = 128; stride > 0; stride /= 2) {
        if (t < stride) tile[t] += tile[t + stride];
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      if (t == 0) y[g] = tile[0];
    }`,
    input: 1 << 16,
    output: 256,
    run: { grid: 1 << 16, threadgroup: 256 },
  },
  {
    name: "tiled_matmul",
    source: `kernel void tiled_matmul(device const float* x, device float* y, uint2 at [[thread_position_in_grid]],
                                uint2 t [[thread_position_in_threadgroup]]) {
      threadgroup float a[16][16], b[16][16];
      float sum = 0;
      for (uint k = 0; k < 128; k += 16) {
        a[t.y][t.x] = x[at.y * 128 + k + t.x];
        b[t.y][t.x] = x[(k + t.y) * 128 + at.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < 16; i++) sum += a[t.y][i] * b[i][t.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      y[at.y * 128 + at.x] = sum;
    }`,
    input: 128 * 128,
    output: 128 * 128,
    run: { grid: [128, 128], threadgroup: [16, 16] },
  },
  {
    name: "simdgroup_matmul",
    source: `kernel void simdgroup_matmul(device const float* x, device float* y,
                                 uint2 g [[threadgroup_position_in_grid]]) {
      simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (uint k = 0; k < 128; k += 8) {
        simdgroup_load(a, x + g.y * 8 * 128 + k, 128);
        simdgroup_load(b, x + k * 128 + g.x * 8, 128);
        simdgroup_multiply_accumulate(c, a, b, c);
      }
      simdgroup_store(c, y + g.y * 8 * 128 + g.x * 8, 128);
    }`,
    input: 128 * 128,
    output: 128 * 128,
    run: { threadgroups: [16, 16], threadgroup: 32 },
  },
  {
    name: "softmax",
    source: `kernel void softmax(device const float* x, device float* y, uint row [[threadgroup_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]]) {
      float most = -INFINITY;
      for (uint i = lane; i < 512; i += 32) most = max(most, x[row * 512 + i]);
      most = simd_max(most);
      float sum = 0;
      for (uint i = lane; i < 512; i += 32) sum += exp(x[row * 512 + i] - most);
      sum = simd_sum(sum);
      for (uint i = lane; i < 512; i += 32) y[row * 512 + i] = exp(x[row * 512 + i] - most) / sum;
    }`,
    input: 256 * 512,
    output: 256 * 512,
    run: { threadgroups: 256, threadgroup: 32 },
  },
  {
    name: "unpack_int4",
    source: `kernel void unpack_int4(device const uchar* x, device half* y, uint i [[thread_position_in_grid]]) {
      uchar two = x[i];
      y[2 * i] = half((two & 15) - 8);
      y[2 * i + 1] = half((two >> 4) - 8);
    }`,
    input: 1 << 14,
    output: 1 << 16,
    run: { grid: 1 << 16, threadgroup: 256 },
  },
];

using context = new MetalContext();
if (!context.deviceInfo().isSoftware) {
  console.log("The checker belongs to the software device, on Linux.");
  process.exit(0);
}
context.configure("workers", 1);

const rows = cases.map(({ name, source, input, output, run }) => {
  using kernel = metalKernel({ name, source: head + source, context });
  using x = new DeviceBuffer(
    Float32Array.from({ length: input }, (_, i) => Math.sin(i)),
    { context },
  );
  using y = new DeviceBuffer(output * 4, { context });
  const once = (check: boolean) => () => {
    context.configure("check", check);
    kernel.encode({ x, y }, run);
    context.wait();
  };
  const [plain, checked] = interleaved({ plain: once(false), checked: once(true) });
  context.configure("check", false);
  return row(name, plain, checked);
});

/** The fastest time of each build, which other programs disturb least. */
function row(name: string, plain: Measured | undefined, checked: Measured | undefined) {
  const ratio = (checked?.fastest ?? Number.NaN) / (plain?.fastest ?? Number.NaN);
  return [name, plain?.fastest.toFixed(2) ?? "", checked?.fastest.toFixed(2) ?? "", ratio.toFixed(1)] as const;
}

rows.push(product(512));
console.log("The checker's cost (milliseconds a dispatch, the fastest of 9, in turn, one worker)");
console.log(table(["kernel", "plain", "checked", "ratio"], rows));
const worst = Math.max(...rows.map(([, , , ratio]) => Number(ratio)));
console.log(`largest ratio ${worst}, budget ${budget}`);

/** A product of the library, n × n × n, in tiles of 64 × 64. */
function product(n: number) {
  const shared = metalContext();
  shared.configure("workers", 1);
  return withBackend("metal", () => {
    const [a, b] = [randn([n, n]), randn([n, n])];
    const once = (check: boolean) => () => {
      shared.configure("check", check);
      a.matmul(b).dispose();
      shared.wait();
    };
    const [plain, checked] = interleaved({ plain: once(false), checked: once(true) });
    shared.configure("check", false);
    return row(`matmul ${n}³`, plain, checked);
  });
}

const firsts = [
  ["metalKernel, 4 lines", "program"],
  ["matmul", "ones([64, 64]).matmul(ones([64, 64]))"],
  ["softmax", "ones([64, 64]).softmax(-1)"],
  ["flashAttention", "flashAttention(ones([1, 1, 64, 64]), ones([1, 1, 64, 64]), ones([1, 1, 64, 64]))"],
  ["linalg.qr", "linalg.qr(ones([64, 64]))"],
] as const;

const firstRows = firsts.map(([name, call]) => {
  const [plain, checked] = [first(call, "0"), first(call, "report")];
  return [name, plain.wall, plain.processor, checked.wall, checked.processor];
});
console.log("\nThe first result with nothing compiled before (seconds, and seconds of processor time)");
console.log(table(["operation", "plain", "processor", "checked", "processor"], firstRows));

/** The time of a process that computes one result, minus one that computes nothing. */
function first(call: string, check: string) {
  const kernel = `metalKernel({ name: "twice", source: "#include <metal_stdlib>\\nkernel void twice(device float* x, " +
    "uint i [[thread_position_in_grid]]) { x[i] *= 2; }" }).run({ x: new Float32Array(4) }, { grid: 4 });`;
  const body =
    call === "program" ? kernel : `const y = ${call}; console.log(y.length ?? y.shape); metalContext().wait();`;
  const cache = mkdtempSync(join(tmpdir(), "orchard-first-"));
  const text = `import { flashAttention, linalg, metalContext, metalKernel, ones, setStrict } from "./src/index.ts";
    setStrict(true); metalContext(); const start = performance.now(); ${body}
    console.error((performance.now() - start) / 1000);`;
  const { stderr, resourceUsage, exitCode } = Bun.spawnSync([process.execPath, "-e", text], {
    cwd: packageRoot,
    env: {
      ...process.env,
      ORCHARD_BACKEND: "metal",
      ORCHARD_METAL_CACHE: cache,
      ORCHARD_METAL_CHECK: check,
      ORCHARD_METAL_COMPILE_TIMEOUT_MS: "600000",
    },
  });
  rmSync(cache, { recursive: true });
  if (exitCode !== 0) throw new Error(stderr.toString());
  const wall =
    stderr
      .toString()
      .trim()
      .split("\n")
      .map(Number)
      .find((value) => value > 0) ?? Number.NaN;
  return { wall: wall.toFixed(1), processor: (Number(resourceUsage?.cpuTime.total) / 1e6).toFixed(1) };
}
