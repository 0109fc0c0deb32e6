/** Typical kernels of models, over rows and images. */
import type { Random } from "../../../ops/samples.ts";
import {
  barrier,
  change,
  drop,
  exchange,
  floats,
  outside,
  type Program,
  pick,
  place,
  position,
  program,
} from "./program.ts";

/** Layer norm: the threads of a row exchange partial sums, two values each, through threadgroup memory. */
export function layerNorm(random: Random): Program {
  const simdgroups = random.integer(2, 4);
  const width = 4 * random.integer(40, 90);
  const group = 32 * simdgroups;
  return program(
    "layer norm by float4",
    `kernel void k(device const float4* x, device const float4* weight, device float4* y, ${place}) {
  threadgroup float2 partial[${simdgroups}];
  device const float4* row = x + g * ${width / 4};
  float2 sums = float2(0);
  for (uint j = t; j < ${width / 4}; j += ${group}) {
    const float4 v = row[j];
    sums += float2(dot(v, float4(1)), dot(v, v));
  }
  sums = float2(simd_sum(sums.x), simd_sum(sums.y));
  if (t % 32 == 0) partial[t / 32] = sums;
  ${barrier}
  float2 whole = float2(0);
  for (uint j = 0; j < ${simdgroups}; j++) whole += partial[j];
  const float mean = whole.x / ${width}, scale = rsqrt(whole.y / ${width} - mean * mean + 1e-5f);
  for (uint j = t; j < ${width / 4}; j += ${group}) y[g * ${width / 4} + j] = (row[j] - mean) * scale * weight[j];
}`,
    {
      bindings: () => ({ x: floats(2 * width), weight: floats(width), y: new Float32Array(2 * width) }),
      grid: 2 * group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        outside(`partial[${simdgroups}]`, `partial[${simdgroups - 1}]`),
        change("t % 32 == 0", "t == 0", ["uninitialized-read"], /write it first/),
        change("float2 sums = float2(0);", "float2 sums;", ["uninitialized-read"], /initialize it/),
        change("float2 whole = float2(0);", "float2 whole;", ["uninitialized-read"], /initialize it/),
        outside(`x + g * ${width / 4}`, `x + g * ${width}`),
        outside("* weight[j]", `* weight[j + ${width / 4}]`),
        outside(`y[g * ${width / 4} + j]`, `y[(g + 1) * ${width / 4} + j]`),
        change(barrier, `if (t % 32 == 0) ${barrier}`, ["barrier-divergence", "threadgroup-race"], /barrier/),
      ],
    },
  );
}

/** Rotary positions: each thread rotates a pair of elements. */
export function rotary(random: Random): Program {
  const [half, rows] = [pick(random, [8, 16, 24]), random.integer(3, 7)];
  return program(
    "rotary positions",
    `kernel void k(device const float* x, device const float* table, device float* y, constant uint2& size,
                   uint2 at [[thread_position_in_grid]]) {
  if (at.x >= size.x || at.y >= size.y) return;
  const float angle = table[at.x] * at.y;
  const uint first = at.y * 2 * size.x + at.x, second = first + size.x;
  y[first] = x[first] * cos(angle) - x[second] * sin(angle);
  y[second] = x[second] * cos(angle) + x[first] * sin(angle);
}`,
    {
      bindings: () => ({
        x: floats(2 * half * rows),
        table: floats(half),
        y: new Float32Array(2 * half * rows),
        size: Uint32Array.of(half, rows),
      }),
      grid: [32, 8],
      threadgroup: [32, 4],
      mistakes: [
        outside("at.x >= size.x || at.y >= size.y", "at.y >= size.y", ["device-race"]),
        outside("at.x >= size.x || at.y >= size.y", "at.x >= size.x"),
        outside("at.y >= size.y", "at.y > size.y"),
        outside("table[at.x]", `table[at.x + ${half}]`),
        outside("second = first + size.x", "second = first + 2 * size.x", ["device-race"]),
        change("at.y * 2 * size.x", "at.y * size.x", ["device-race"], /one thread write it|barrier/),
      ],
    },
  );
}

/** A product with a matrix in compressed row format; a SIMD-group computes each row. */
export function sparseRows(random: Random): Program {
  const rows = random.integer(4, 9);
  const lengths = Array.from({ length: rows }, () => random.integer(1, 70));
  const starts = Uint32Array.of(0, ...lengths);
  for (let row = 1; row <= rows; row++) starts[row] += starts[row - 1];
  const count = starts[rows];
  const columns = random.integer(20, 60);
  return program(
    "product with compressed rows",
    `kernel void k(device const uint* starts, device const uint* columns, device const float* values,
                   device const float* x, device float* y, constant uint& rows,
                   uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float sum = 0;
  for (uint j = starts[row] + lane; j < starts[row + 1]; j += 32) sum += values[j] * x[columns[j]];
  sum = simd_sum(sum);
  if (lane == 0) y[row] = sum;
}`,
    {
      bindings: () => ({
        starts,
        columns: Uint32Array.from({ length: count }, (_, at) => (at * 11) % columns),
        values: floats(count),
        x: floats(columns),
        y: new Float32Array(rows),
        rows: Uint32Array.of(rows),
      }),
      grid: 32 * rows,
      threadgroup: 32,
      mistakes: [
        outside("j < starts[row + 1]", "j <= starts[row + 1]"),
        outside("starts[row + 1]", "starts[row + 2]"),
        outside("x[columns[j]]", `x[columns[j] + ${columns}]`),
        outside("x[columns[j]]", "x[columns[j + 64]]"),
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialize it/),
        change("y[row] = sum", "y[0] = sum", ["device-race"], /one thread write it|atomic/),
        change("if (lane == 0) y[row] = sum;", "y[row] = sum + lane;", ["device-race"], /one thread write it|atomic/),
        outside("y[row] =", "y[row + 1] ="),
      ],
    },
  );
}

/** The maximum of each window of an image. Windows are clamped to the edges. */
export function pooling(random: Random): Program {
  const [width, height] = [2 * random.integer(5, 12) + 1, 2 * random.integer(3, 8) + 1];
  const [wide, high] = [(width + 1) / 2, (height + 1) / 2];
  return program(
    "largest of windows",
    `kernel void k(device const float* image, device float* y, constant int2& size, constant int2& half_size,
                   uint2 place [[thread_position_in_grid]]) {
  const int2 at = int2(place);
  if (any(at >= half_size)) return;
  float most = -INFINITY;
  for (int j = 0; j < 2; j++)
    for (int i = 0; i < 2; i++) {
      const int2 from = min(2 * at + int2(i, j), size - 1);
      most = max(most, image[from.y * size.x + from.x]);
    }
  y[at.y * half_size.x + at.x] = most;
}`,
    {
      bindings: () => ({
        // with the usual numbers, rows of 17 elements are equal, so threads would write equal values to one element
        image: Float32Array.from({ length: width * height }, (_, at) => ((at * 37) % 101) + 0.5),
        y: new Float32Array(wide * high),
        size: Uint32Array.of(width, height),
        half_size: Uint32Array.of(wide, high),
      }),
      grid: [Math.ceil((wide + 1) / 8) * 8, Math.ceil((high + 1) / 4) * 4],
      threadgroup: [8, 4],
      mistakes: [
        outside("any(at >= half_size)", "all(at >= half_size)", ["device-race"]),
        outside("any(at >= half_size)", "any(at > half_size)", ["device-race"]),
        outside("min(2 * at + int2(i, j), size - 1)", "2 * at + int2(i, j)"),
        outside("size - 1)", "size)"),
        outside("from.y * size.x", "(from.y + size.y) * size.x"),
        change("float most = -INFINITY;", "float most;", ["uninitialized-read"], /initialize it/),
        outside("y[at.y * half_size.x + at.x]", "y[at.y * size.x + at.x]"),
        change("y[at.y * half_size.x + at.x]", "y[at.x]", ["device-race"], /one thread write it|atomic/),
      ],
    },
  );
}

/** Online softmax: each SIMD-group keeps its maximum and its sum, which are combined at the end. */
export function onlineSoftmax(random: Random): Program {
  const simdgroups = random.integer(2, 4);
  const group = 32 * simdgroups;
  const width = random.integer(group, 3 * group);
  return program(
    "softmax in one pass",
    `kernel void k(device const float* x, device float* y, constant uint& n, ${place}) {
  threadgroup float most[${simdgroups}], sums[${simdgroups}];
  float high = -INFINITY, sum = 0;
  for (uint j = t; j < n; j += ${group}) {
    const float v = x[g * n + j], top = max(high, v);
    sum = sum * exp(high - top) + exp(v - top);
    high = top;
  }
  const float top = simd_max(high);
  sum = simd_sum(sum * exp(high - top));
  if (simd_is_first()) { most[t / 32] = top; sums[t / 32] = sum; }
  ${barrier}
  float all = most[0], whole = 0;
  for (uint j = 1; j < ${simdgroups}; j++) all = max(all, most[j]);
  for (uint j = 0; j < ${simdgroups}; j++) whole += sums[j] * exp(most[j] - all);
  for (uint j = t; j < n; j += ${group}) y[g * n + j] = exp(x[g * n + j] - all) / whole;
}`,
    {
      bindings: () => ({ x: floats(2 * width), y: new Float32Array(2 * width), n: Uint32Array.of(width) }),
      grid: 2 * group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        change(barrier, "threadgroup_barrier(mem_flags::mem_none);", ["barrier-missing-flag"], /mem_threadgroup/),
        drop("the sums", "sums[t / 32] = sum;", ["uninitialized-read"], /write it first/),
        drop("the maxima", "most[t / 32] = top;", ["uninitialized-read"], /write it first/),
        change("high = -INFINITY, sum = 0;", "high, sum = 0;", ["uninitialized-read"], /initialize it/),
        change("most[0], whole = 0;", "most[0], whole;", ["uninitialized-read"], /initialize it/),
        outside(`sums[${simdgroups}]`, `sums[${simdgroups - 1}]`),
        outside("most[0], whole", `most[${simdgroups}], whole`),
        outside("const float v = x[g * n + j]", "const float v = x[(g + 1) * n + j]"),
        change("simd_is_first()", "t == 0", ["uninitialized-read"], /write it first/),
      ],
    },
  );
}

/** Sums of columns, one tile of rows at a time, in a threadgroup memory argument. */
export function columnSums(random: Random): Program {
  const [tall, wide] = [pick(random, [4, 8]), 16];
  const rows = tall * random.integer(2, 5) + 1;
  return program(
    "sums of columns",
    `static void add_down(threadgroup float (&part)[${tall}][${wide}], uint2 t) {
  for (uint n = ${tall / 2}; n > 0; n /= 2) {
    ${barrier}
    if (t.y < n) part[t.y][t.x] += part[t.y + n][t.x];
  }
}

kernel void k(device const float* x, device float* y, constant uint& rows,
              uint2 t [[thread_position_in_threadgroup]], uint2 g [[threadgroup_position_in_grid]]) {
  threadgroup float part[${tall}][${wide}];
  float sum = 0;
  for (uint row = t.y; row < rows; row += ${tall}) sum += x[row * ${2 * wide} + g.x * ${wide} + t.x];
  part[t.y][t.x] = sum;
  add_down(part, t);
  if (t.y == 0) y[g.x * ${wide} + t.x] = part[0][t.x];
}`,
    {
      bindings: () => ({ x: floats(rows * 2 * wide), y: new Float32Array(2 * wide), rows: Uint32Array.of(rows) }),
      grid: [2 * wide, tall],
      threadgroup: [wide, tall],
      mistakes: [
        drop("the barrier of each round", barrier),
        change(barrier, "simdgroup_barrier(mem_flags::mem_threadgroup);", ["threadgroup-race"], exchange),
        outside("row < rows", "row <= rows"),
        outside("part[t.y + n][t.x]", "part[t.y + 2 * n][t.x]"),
        change("if (t.y == 0) y[", "if (t.y < 2) y[", ["device-race", "threadgroup-race"], /./),
        drop("the stored sums", "part[t.y][t.x] = sum;", ["uninitialized-read"], /write it first/),
        outside(`y[g.x * ${wide} + t.x]`, `y[g.x * ${2 * wide} + t.x]`),
        change("add_down(part, t);", `if (t.x < 8) add_down(part, t); ${barrier}`, ["barrier-divergence"], /barrier/),
      ],
    },
  );
}

/** All threads load a tile of rows, striding by the size of the threadgroup, as is common. */
export function tileOfRows(random: Random): Program {
  const [group, tile, depth] = [64, 8, pick(random, [12, 20])];
  const rows = tile * random.integer(2, 3);
  return program(
    "a tile that all threads load",
    `kernel void k(device const float* x, device float* y, ${position}, ${place}) {
  threadgroup float rows[${tile * depth}];
  for (uint j = t; j < ${tile * depth}; j += ${group}) rows[j] = x[g * ${tile * depth} + j];
  ${barrier}
  const uint row = t / 8, part = t % 8;
  float sum = 0;
  for (uint j = part; j < ${depth}; j += 8) sum += rows[row * ${depth} + j];
  sum += simd_shuffle_xor(sum, 1);
  sum += simd_shuffle_xor(sum, 2);
  sum += simd_shuffle_xor(sum, 4);
  if (part == 0) y[g * ${tile} + row] = sum;
}`,
    {
      bindings: () => ({ x: floats(rows * depth), y: new Float32Array(rows) }),
      grid: (rows / tile) * group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        change(
          `j < ${tile * depth}; j += ${group}`,
          `j < ${group}; j += ${group}`,
          ["uninitialized-read"],
          /write it first/,
        ),
        outside(`rows[${tile * depth}]`, `rows[${tile * depth - 4}]`),
        outside(`x[g * ${tile * depth} + j]`, `x[(g + 1) * ${tile * depth} + j]`),
        outside(`rows[row * ${depth} + j]`, `rows[row * ${depth + 8} + j]`),
        change(`y[g * ${tile} + row]`, `y[g * ${tile}]`, ["device-race"], /one thread write it|barrier/),
        change("simd_shuffle_xor(sum, 4)", "simd_shuffle_xor(sum, t % 8)", ["nonuniform-argument"], /./),
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialize it/),
      ],
    },
  );
}
