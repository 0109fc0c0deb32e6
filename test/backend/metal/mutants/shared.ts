/** Threads of a threadgroup that exchange values. */
import type { Random } from "../../../ops/samples.ts";
import {
  barrier,
  bounds,
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
  races,
} from "./program.ts";

export function neighbors(random: Random): Program {
  const group = pick(random, [64, 96, 128]);
  const count = group * random.integer(1, 4);
  const step = random.integer(1, group - 1);
  return program(
    "neighbors",
    `kernel void k(device const float* x, device float* y, ${position}, ${place}) {
  threadgroup float tile[${group}];
  tile[t] = x[i];
  ${barrier}
  y[i] = tile[t] + tile[(t + ${step}) % ${group}];
}`,
    {
      bindings: () => ({ x: floats(count), y: new Float32Array(count) }),
      grid: count,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        change(barrier, "threadgroup_barrier(mem_flags::mem_none);", ["barrier-missing-flag"], /mem_threadgroup/),
        change(barrier, "threadgroup_barrier(mem_flags::mem_device);", ["barrier-missing-flag"], /mem_threadgroup/),
        change(barrier, "simdgroup_barrier(mem_flags::mem_threadgroup);", races, exchange),
        outside(`tile[${group}]`, `tile[${group - 8}]`),
        outside(`(t + ${step}) % ${group}`, `t + ${step}`),
        change(barrier, `if (t < 32) ${barrier}`, ["barrier-divergence", ...races], /barrier|write it first/),
      ],
    },
  );
}

export function transpose(random: Random): Program {
  const [rows, columns] = [random.integer(9, 40), random.integer(9, 40)];
  const side = 8;
  return program(
    "transpose",
    `kernel void k(device const float* x, device float* y, constant uint2& size,
                   uint2 t [[thread_position_in_threadgroup]], uint2 g [[threadgroup_position_in_grid]]) {
  threadgroup float tile[${side}][${side + 1}];
  const uint2 from = g * ${side} + t, to = g.yx * ${side} + t;
  if (from.x < size.x && from.y < size.y) tile[t.y][t.x] = x[from.y * size.x + from.x];
  ${barrier}
  if (to.x < size.y && to.y < size.x) y[to.y * size.y + to.x] = tile[t.x][t.y];
}`,
    {
      bindings: () => ({
        x: floats(rows * columns),
        y: new Float32Array(rows * columns),
        size: Uint32Array.of(columns, rows),
      }),
      grid: [Math.ceil(columns / side) * side, Math.ceil(rows / side) * side],
      threadgroup: [side, side],
      mistakes: [
        drop("the barrier", barrier),
        outside(`[${side}][${side + 1}]`, `[${side - 1}][${side + 1}]`),
        // if the number of rows is a multiple of the tile's, no thread lies past the last row
        ...(rows % side ? [outside("from.x < size.x && from.y < size.y", "from.x < size.x")] : []),
        ...(rows % side ? [outside("from.y < size.y", "from.y <= size.y")] : []),
      ],
    },
  );
}

export function product(random: Random): Program {
  const side = pick(random, [8, 16]);
  const tiles = random.integer(2, 3);
  const n = side * tiles;
  return program(
    "product in tiles",
    `kernel void k(device const float* a, device const float* b, device float* c,
                   uint2 t [[thread_position_in_threadgroup]], uint2 p [[thread_position_in_grid]]) {
  threadgroup float left[${side}][${side}], right[${side}][${side}];
  float sum = 0;
  for (uint at = 0; at < ${n}; at += ${side}) {
    left[t.y][t.x] = a[p.y * ${n} + at + t.x];
    right[t.y][t.x] = b[(at + t.y) * ${n} + p.x];
    ${barrier}  // loaded
    for (uint j = 0; j < ${side}; j++) sum += left[t.y][j] * right[j][t.x];
    ${barrier}  // used
  }
  c[p.y * ${n} + p.x] = sum;
}`,
    {
      bindings: () => ({ a: floats(n * n), b: floats(n * n), c: new Float32Array(n * n) }),
      grid: [n, n],
      threadgroup: [side, side],
      mistakes: [
        drop("the barrier after loading", `${barrier}  // loaded`),
        drop("the barrier after use", `${barrier}  // used`),
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialize it/),
        outside(`at < ${n}`, `at <= ${n}`),
        outside(`right[${side}][${side}]`, `right[${side - 1}][${side}]`),
        change(
          `${barrier}  // loaded`,
          `if (t.y < ${side / 2}) ${barrier}`,
          ["barrier-divergence", ...races],
          /barrier|write it first/,
        ),
      ],
    },
  );
}

export function throughDevice(random: Random): Program {
  const group = pick(random, [64, 96, 128]);
  const flag = "threadgroup_barrier(mem_flags::mem_device);";
  return program(
    "exchange through device memory",
    `kernel void k(device const float* x, device float* y, device float* z, ${place}) {
  y[t] = 2 * x[t];
  ${flag}
  z[t] = y[${group - 1} - t];
}`,
    {
      bindings: () => ({ x: floats(group), y: new Float32Array(group), z: new Float32Array(group) }),
      grid: group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", flag, ["device-race"]),
        change(flag, barrier, ["barrier-missing-flag"], /mem_device/),
        change(flag, "threadgroup_barrier(mem_flags::mem_texture);", ["barrier-missing-flag"], /mem_device/),
        outside(`${group - 1} - t`, `${group} - t`),
      ],
    },
  );
}

export function lanes(random: Random): Program {
  const group = pick(random, [32, 64]);
  const call = pick(random, ["simd_shuffle(x[i], 31 - t % 32)", "simd_shuffle_xor(x[i], 5)"]);
  return program(
    "exchange between lanes",
    `kernel void k(device const float* x, device float* y, ${position}, ${place}) {
  y[i] = ${call};
}`,
    {
      bindings: () => ({ x: floats(group), y: new Float32Array(group) }),
      grid: group,
      threadgroup: group,
      mistakes: [
        change(call, "simd_shuffle(x[i], 40)", ["inactive-lane"], /./),
        change(`y[i] = ${call};`, `if (t % 32 < 20) y[i] = simd_shuffle(x[i], 25);`, ["inactive-lane"], /./),
        change(call, "simd_shuffle_xor(x[i], t)", ["nonuniform-argument"], /./),
      ],
    },
  );
}

export function matrices(): Program {
  return program(
    "product of SIMD-group matrices",
    `kernel void k(device const float* a, device const float* b, device float* c, ${place}) {
  simdgroup_float8x8 left, right, sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint at = 0; at < 16; at += 8) {
    simdgroup_load(left, a + at, 16);
    simdgroup_load(right, b + 8 * at, 8);
    simdgroup_multiply_accumulate(sum, left, right, sum);
  }
  simdgroup_store(sum, c, 8);
}`,
    {
      bindings: () => ({ a: floats(128), b: floats(128), c: new Float32Array(64) }),
      grid: 32,
      threadgroup: 32,
      mistakes: [
        outside("b + 8 * at", "b + 16 * at"),
        outside("at < 16", "at <= 16"),
        outside("c, 8)", "c + 8, 8)"),
        change("simdgroup_store(sum, c, 8);", "if (t < 16) simdgroup_store(sum, c, 8);", ["nonuniform-matrix"], /./),
      ],
    },
  );
}

export function halo(random: Random): Program {
  const [group, radius] = [pick(random, [32, 64]), random.integer(1, 4)];
  const count = group * random.integer(2, 4) + random.integer(1, group - 1);
  const type = pick(random, ["float", "int"] as const);
  return program(
    "convolution with a halo",
    `kernel void k(device const float* x, device float* y, constant int& n, ${place}) {
  threadgroup ${type} tile[${group + 2 * radius}];
  const int start = int(g * ${group}) - ${radius};
  for (int j = t; j < ${group + 2 * radius}; j += ${group}) {
    const int at = start + j;
    tile[j] = at >= 0 && at < n ? ${type}(x[at]) : ${type}(0);
  }
  ${barrier}
  const int i = g * ${group} + t;
  if (i >= n) return;
  ${type} sum = 0;
  for (int j = 0; j <= 2 * ${radius}; j++) sum += tile[int(t) + j];
  y[i] = sum;
}`,
    {
      bindings: () => ({ x: floats(count), y: new Float32Array(count), n: Uint32Array.of(count) }),
      grid: Math.ceil(count / group) * group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        outside("at >= 0 && at < n", "at < n"),
        outside("at >= 0 && at < n", "at >= 0"),
        outside("if (i >= n) return;", ""),
        outside(`tile[${group + 2 * radius}]`, `tile[${group + radius}]`),
        outside(`j <= 2 * ${radius}`, `j <= 2 * ${radius} + 1`, ["uninitialized-read"]),
        change(
          `int j = t; j < ${group + 2 * radius}`,
          `int j = t; j < ${group}`,
          ["uninitialized-read"],
          /write it first/,
        ),
        drop("the end of threads past the end", "if (i >= n) return;", ["out-of-bounds"], bounds),
      ],
    },
  );
}

export function twoTiles(random: Random): Program {
  const [group, rounds] = [pick(random, [64, 128]), random.integer(3, 5)];
  return program(
    "two tiles in turn",
    `kernel void k(device const float* x, device float* y, ${place}) {
  threadgroup float tiles[2][${group}];
  tiles[0][t] = x[t];
  float sum = 0;
  for (uint j = 0; j < ${rounds}; j++) {
    ${barrier}
    if (j + 1 < ${rounds}) tiles[(j + 1) % 2][t] = x[(j + 1) * ${group} + t];
    sum += tiles[j % 2][${group - 1} - t];
  }
  y[t] = sum;
}`,
    {
      bindings: () => ({ x: floats(rounds * group), y: new Float32Array(group) }),
      grid: group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        change("tiles[(j + 1) % 2][t]", "tiles[j % 2][t]", races, exchange),
        change(barrier, `if (j % 2 == 0) ${barrier}`, races, exchange),
        outside(`if (j + 1 < ${rounds})`, ""),
        outside("tiles[2]", "tiles[1]"),
      ],
    },
  );
}
