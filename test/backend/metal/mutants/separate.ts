/** Threads that share no memory, except memory that they only read or that they update atomically. */
import type { Random } from "../../../ops/samples.ts";
import { change, floats, outside, type Program, pick, places, position, program } from "./program.ts";

/** A kernel whose threads past the end return. */
export function elementwise(random: Random): Program {
  const [count, group] = [random.integer(70, 500), pick(random, [32, 64, 96])];
  const value = pick(random, ["2 * x[i] + 1", "exp(-x[i])", "x[i] < 3 ? x[i] : -x[i]", "fma(x[i], x[i], 1.0f)"]);
  return program(
    "elementwise",
    `kernel void k(device const float* x, device float* y, constant uint& n, ${position}) {
  if (i < n) {
    y[i] = ${value};
  }
}`,
    {
      bindings: () => ({ x: floats(count), y: new Float32Array(count), n: Uint32Array.of(count) }),
      grid: Math.ceil((count + 1) / group) * group,
      threadgroup: group,
      mistakes: [
        outside("i < n", "i <= n"),
        outside("i < n", "i < n + 1"),
        outside("if (i < n)", ""),
        outside("y[i] =", "y[i + 1] ="),
        outside("y[i] =", "y[n - 2 * i] ="),
      ],
    },
  );
}

export function total(random: Random): Program {
  const group = pick(random, [32, 64, 128]);
  const groups = random.integer(1, 4);
  const type = pick(random, ["uint", "int"] as const);
  return program(
    "sum by atomics",
    `kernel void k(device const uint* x, device atomic_${type}* sum, ${position}) {
  atomic_fetch_add_explicit(sum, ${type}(x[i]), memory_order_relaxed);
}`,
    {
      bindings: () => ({ x: places(group * groups), sum: new Uint32Array(1) }),
      grid: group * groups,
      threadgroup: group,
      mistakes: [
        change(
          `atomic_fetch_add_explicit(sum, ${type}(x[i]), memory_order_relaxed);`,
          `*(device ${type}*)sum += ${type}(x[i]);`,
          ["device-race"],
          /atomic/,
        ),
        change(
          `atomic_fetch_add_explicit(sum, ${type}(x[i]), memory_order_relaxed);`,
          `*(device ${type}*)sum = *(device ${type}*)sum + ${type}(x[i]);`,
          ["device-race"],
          /atomic/,
        ),
        change(
          `atomic_fetch_add_explicit(sum, ${type}(x[i]), memory_order_relaxed);`,
          `if (i == 0) *(device ${type}*)sum = 3; else atomic_fetch_add_explicit(sum, 1, memory_order_relaxed);`,
          ["device-race"],
          /atomic/,
        ),
        outside(`x[i]`, "x[i * 2 + 1]"),
      ],
    },
  );
}

export function gather(random: Random): Program {
  const count = random.integer(40, 300);
  return program(
    "gather",
    `kernel void k(device const float* x, device const uint* at, device float* y, ${position}) {
  y[i] = x[at[i]];
}`,
    {
      bindings: () => ({ x: floats(count), at: places(count), y: new Float32Array(count) }),
      grid: count,
      threadgroup: 32,
      mistakes: [
        outside("x[at[i]]", `x[at[i] + ${count}]`),
        outside("x[at[i]]", "x[at[i] - 1]"),
        outside("x[at[i]]", "x[at[i + 1]]"),
        change("y[i] =", "y[0] =", ["device-race"], /one thread write it|atomic/),
        outside("y[i] =", "y[i << 24] ="),
      ],
    },
  );
}

export function vectors(random: Random): Program {
  const count = 4 * random.integer(8, 60);
  return program(
    "vectors",
    `kernel void k(device const float* x, device float* y, ${position}) {
  float4 v = *(device const float4*)(x + 4 * i);
  *(device float4*)(y + 4 * i) = v * v;
}`,
    {
      bindings: () => ({ x: floats(count), y: new Float32Array(count) }),
      grid: count / 4,
      threadgroup: 8,
      mistakes: [
        change("(x + 4 * i)", "(x + 3 * i)", ["misaligned"], /packed_/),
        outside("(x + 4 * i)", "(x + 4 * i + 4)"),
        outside("(y + 4 * i)", "(y + 8 * i)"),
        change("(y + 4 * i)", "(y + i)", ["misaligned", "device-race"], /packed_|one thread|barrier/),
      ],
    },
  );
}

export function window(random: Random): Program {
  const [count, width] = [random.integer(40, 120), random.integer(3, 7)];
  return program(
    "window in a thread's array",
    `kernel void k(device const float* x, device float* y, ${position}) {
  float w[${width}];
  for (uint j = 0; j < ${width}; j++) w[j] = x[i + j];
  float sum = 0;
  for (uint j = 0; j < ${width}; j++) sum += w[j] * w[${width - 1} - j];
  y[i] = sum;
}`,
    {
      bindings: () => ({ x: floats(count + width - 1), y: new Float32Array(count) }),
      grid: count,
      threadgroup: 32,
      mistakes: [
        outside(`w[${width}]`, `w[${width - 1}]`),
        outside(`w[${width - 1} - j]`, `w[${width} - j]`),
        outside("x[i + j]", "x[i + j + 1]"),
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialize it/),
      ],
    },
  );
}

export function compaction(random: Random): Program {
  const group = pick(random, [32, 64]);
  const count = group * random.integer(1, 3);
  return program(
    "compaction",
    `kernel void k(device const uint* x, device uint* y, device atomic_uint* length, ${position}) {
  if (x[i] % 3 == 0) y[atomic_fetch_add_explicit(length, 1u, memory_order_relaxed)] = x[i];
}`,
    {
      bindings: () => ({ x: places(count), y: new Uint32Array(Math.ceil(count / 3)), length: new Uint32Array(1) }),
      grid: count,
      threadgroup: group,
      mistakes: [
        change(
          "atomic_fetch_add_explicit(length, 1u, memory_order_relaxed)",
          "(*(device uint*)length)++",
          ["device-race"],
          /atomic/,
        ),
        change(
          "atomic_fetch_add_explicit(length, 1u, memory_order_relaxed)",
          "atomic_load_explicit(length, memory_order_relaxed)",
          ["device-race"],
          /one thread write it/,
        ),
        outside("x[i] % 3 == 0", "x[i] % 2 == 0"),
        outside("[atomic_fetch", "[1 + atomic_fetch"),
      ],
    },
  );
}

export function unpacking(random: Random): Program {
  const words = random.integer(20, 90);
  return program(
    "unpacking of 4-bit numbers",
    `kernel void k(device const uchar* x, device const half* scales, device float* y, constant uint& n, ${position}) {
  if (i >= n) return;
  const half scale = scales[i / 16];
  y[2 * i] = scale * half(x[i] & 15);
  y[2 * i + 1] = scale * half(x[i] >> 4);
}`,
    {
      bindings: () => ({
        x: new Uint8Array(words).fill(0x37),
        scales: new Float16Array(Math.ceil(words / 16)).fill(0.5),
        y: new Float32Array(2 * words),
        n: Uint32Array.of(words),
      }),
      grid: Math.ceil((words + 1) / 32) * 32,
      threadgroup: 32,
      mistakes: [
        outside("if (i >= n) return;", ""),
        outside("i >= n", "i > n"),
        outside("i / 16", "i / 8"),
        outside("2 * i + 1", "2 * i + 2"),
        change("y[2 * i + 1]", "y[2 * i + 2]", ["device-race", "out-of-bounds"], /one thread|compare the index/),
      ],
    },
  );
}
