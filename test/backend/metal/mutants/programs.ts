/**
 * Kernels as people write them, with sizes and types that are drawn, and the mistakes that people make in each: what is
 * left out or changed, and the kinds of finding that tell of it. Every barrier, bound and atomic in them is needed.
 */
import type { Random } from "../../../ops/samples.ts";

/** One mistake: a text of the source, what stands there instead, and what the checker has to say. */
export interface Mistake {
  readonly name: string;
  readonly find: string;
  readonly replace: string;
  readonly kinds: readonly string[];
  /** What the advice has to name. */
  readonly says: RegExp;
}

/** A kernel `k` with its arguments and the mistakes that can be planted in it. */
export interface Program {
  readonly name: string;
  readonly source: string;
  readonly bindings: () => Record<string, Float32Array | Float16Array | Uint32Array | Uint8Array>;
  readonly grid: number | [number, number];
  readonly threadgroup: number | [number, number];
  readonly mistakes: readonly Mistake[];
}

const header = "#include <metal_stdlib>\nusing namespace metal;\n";
const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);";
const position = "uint i [[thread_position_in_grid]]";
const place = "uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]";

const races = ["threadgroup-race", "uninitialized-read"];
const exchange = /threadgroup_barrier\(mem_flags::mem_(?:threadgroup|device)\)|write it first/;
const bounds = /compare the index|keep it below|check the index|left the bounds/;

const drop = (name: string, find: string, kinds = races, says = exchange): Mistake => ({
  name: `without ${name}`,
  find,
  replace: ";",
  kinds,
  says,
});
const change = (find: string, replace: string, kinds: readonly string[], says: RegExp): Mistake => ({
  name: `${replace} for ${find}`,
  find,
  replace,
  kinds,
  says,
});
const outside = (find: string, replace: string, more: readonly string[] = []): Mistake =>
  change(find, replace, ["out-of-bounds", "page-fault", ...more], bounds);

const pick = <Choice>(random: Random, list: readonly Choice[]): Choice => list[random.integer(0, list.length - 1)]!;

const floats = (count: number) => Float32Array.from({ length: count }, (_, at) => (at % 17) + 0.5);
const places = (count: number) => Uint32Array.from({ length: count }, (_, at) => (at * 7) % count);

const program = (name: string, body: string, rest: Omit<Program, "name" | "source">): Program => ({
  name,
  source: header + body,
  ...rest,
});

/** Threads past the end do nothing. */
function elementwise(random: Random): Program {
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

function neighbours(random: Random): Program {
  const group = pick(random, [64, 96, 128]);
  const count = group * random.integer(1, 4);
  const step = random.integer(1, group - 1);
  return program(
    "neighbours",
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

function treeReduction(random: Random): Program {
  const group = pick(random, [64, 128, 256]);
  const groups = random.integer(1, 3);
  const [type, join] = pick(random, [
    ["float", "s[t] += s[t + n];"],
    ["float", "s[t] = max(s[t], s[t + n]);"],
    ["uint", "s[t] = s[t] ^ s[t + n];"],
    ["half", "s[t] = s[t] + s[t + n];"],
  ] as const);
  return program(
    "tree reduction",
    `kernel void k(device const float* x, device float* y, ${position}, ${place}) {
  threadgroup ${type} s[${group}];
  s[t] = ${type}(x[i]);
  ${barrier}  // before
  for (uint n = ${group / 2}; n > 0; n /= 2) {
    if (t < n) ${join}
    ${barrier}  // in the loop
  }
  if (t == 0) y[g] = float(s[0]);
}`,
    {
      bindings: () => ({ x: floats(group * groups), y: new Float32Array(groups) }),
      grid: group * groups,
      threadgroup: group,
      mistakes: [
        drop("the barrier before", `${barrier}  // before`),
        drop("the barrier in the loop", `${barrier}  // in the loop`),
        change(`${barrier}  // in the loop`, `if (n > 32) ${barrier}`, races, exchange),
        outside(`s[${group}]`, `s[${group / 2}]`),
        outside("s[t + n]", "s[t + n + 1]", ["uninitialized-read"]),
        change("if (t < n)", "if (t <= n)", [...races, "out-of-bounds"], /barrier|compare the index|write it first/),
      ],
    },
  );
}

function simdReduction(random: Random): Program {
  const simdgroups = random.integer(2, 8);
  const group = 32 * simdgroups;
  return program(
    "reduction by SIMD-groups",
    `kernel void k(device const float* x, device float* y, ${position}, ${place}) {
  threadgroup float partial[${simdgroups}];
  float v = simd_sum(x[i]);
  if (t % 32 == 0) partial[t / 32] = v;
  ${barrier}
  if (t == 0) {
    float total = 0;
    for (uint j = 0; j < ${simdgroups}; j++) total += partial[j];
    y[g] = total;
  }
}`,
    {
      bindings: () => ({ x: floats(group), y: new Float32Array(1) }),
      grid: group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        change("partial[t / 32] = v", "partial[t / 64] = v", [...races], /one thread|write it first|barrier/),
        outside(`partial[${simdgroups}]`, `partial[${simdgroups - 1}]`),
        outside(`j < ${simdgroups}`, `j <= ${simdgroups}`, ["uninitialized-read"]),
        change("float total = 0;", "float total;", ["uninitialized-read"], /initialise it/),
      ],
    },
  );
}

function histogram(random: Random): Program {
  const [group, bins] = [pick(random, [64, 128]), random.integer(3, 20)];
  const groups = random.integer(1, 3);
  return program(
    "histogram",
    `kernel void k(device const uint* x, device atomic_uint* counts, ${position}, ${place}) {
  threadgroup atomic_uint local[${bins}];
  if (t < ${bins}) atomic_store_explicit(&local[t], 0u, memory_order_relaxed);
  ${barrier}  // zeros
  atomic_fetch_add_explicit(&local[x[i] % ${bins}], 1u, memory_order_relaxed);
  ${barrier}  // counts
  if (t < ${bins})
    atomic_fetch_add_explicit(&counts[t], atomic_load_explicit(&local[t], memory_order_relaxed), memory_order_relaxed);
}`,
    {
      bindings: () => ({ x: places(group * groups), counts: new Uint32Array(bins) }),
      grid: group * groups,
      threadgroup: group,
      mistakes: [
        change(
          `atomic_store_explicit(&local[t], 0u, memory_order_relaxed);`,
          ";",
          ["uninitialized-read"],
          /write it first/,
        ),
        change(
          `atomic_fetch_add_explicit(&local[x[i] % ${bins}], 1u, memory_order_relaxed);`,
          `((threadgroup uint*)local)[x[i] % ${bins}] += 1;`,
          ["threadgroup-race"],
          /atomic/,
        ),
        outside(`x[i] % ${bins}`, `x[i] % ${bins + 1}`, ["uninitialized-read"]),
        outside(`local[${bins}]`, `local[${bins - 1}]`),
      ],
    },
  );
}

function total(random: Random): Program {
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

function transpose(random: Random): Program {
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
        // without a rest no thread lies past the last row
        ...(rows % side ? [outside("from.x < size.x && from.y < size.y", "from.x < size.x")] : []),
        ...(rows % side ? [outside("from.y < size.y", "from.y <= size.y")] : []),
      ],
    },
  );
}

function product(random: Random): Program {
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
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialise it/),
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

function scan(random: Random): Program {
  const group = pick(random, [64, 128]);
  return program(
    "inclusive scan",
    `kernel void k(device const float* x, device float* y, ${position}, ${place}) {
  threadgroup float s[${group}];
  s[t] = x[i];
  ${barrier}  // first
  for (uint n = 1; n < ${group}; n *= 2) {
    const float before = t >= n ? s[t - n] : 0;
    ${barrier}  // read
    s[t] += before;
    ${barrier}  // written
  }
  y[i] = s[t];
}`,
    {
      bindings: () => ({ x: floats(group), y: new Float32Array(group) }),
      grid: group,
      threadgroup: group,
      mistakes: [
        drop("the first barrier", `${barrier}  // first`),
        drop("the barrier after reading", `${barrier}  // read`),
        drop("the barrier after writing", `${barrier}  // written`),
        outside("t >= n ? s[t - n] : 0", "s[t - n]", ["uninitialized-read"]),
        outside(`s[${group}]`, `s[${group - 1}]`),
      ],
    },
  );
}

function bitonicSort(random: Random): Program {
  const group = pick(random, [32, 64, 128]);
  return program(
    "bitonic sort",
    `kernel void k(device float* x, ${place}) {
  threadgroup float s[${2 * group}];
  s[t] = x[t];
  s[t + ${group}] = x[t + ${group}];
  for (uint size = 2; size <= ${2 * group}; size *= 2)
    for (uint n = size / 2; n > 0; n /= 2) {
      ${barrier}  // each round
      const uint a = 2 * n * (t / n) + t % n, b = a + n;
      const bool up = (a & size) == 0;
      if ((s[a] > s[b]) == up) { const float v = s[a]; s[a] = s[b]; s[b] = v; }
    }
  ${barrier}  // end
  x[t] = s[t];
  x[t + ${group}] = s[t + ${group}];
}`,
    {
      bindings: () => ({ x: floats(2 * group) }),
      grid: group,
      threadgroup: group,
      mistakes: [
        drop("the barrier of each round", `${barrier}  // each round`),
        outside(`s[${2 * group}]`, `s[${2 * group - 4}]`),
        outside("b = a + n", "b = a + n + 1"),
        outside(`x[t + ${group}] = `, `x[t + ${group} + 1] = `),
      ],
    },
  );
}

function throughDevice(random: Random): Program {
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

function gather(random: Random): Program {
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

function vectors(random: Random): Program {
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

function window(random: Random): Program {
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
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialise it/),
      ],
    },
  );
}

function lanes(random: Random): Program {
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

function matrices(): Program {
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

function largest(random: Random): Program {
  const group = pick(random, [64, 128]);
  return program(
    "place of the largest",
    `kernel void k(device const float* x, device uint* y, ${position}, ${place}) {
  threadgroup float values[${group}];
  threadgroup uint places[${group}];
  values[t] = x[i];
  places[t] = t;
  for (uint n = ${group / 2}; n > 0; n >>= 1) {
    ${barrier}  // each round
    if (t < n && values[t + n] > values[t]) {
      values[t] = values[t + n];
      places[t] = places[t + n];
    }
  }
  if (t == 0) y[g] = places[0];
}`,
    {
      bindings: () => ({ x: floats(2 * group), y: new Uint32Array(2) }),
      grid: 2 * group,
      threadgroup: group,
      mistakes: [
        drop("the barrier of each round", `${barrier}  // each round`),
        change(`${barrier}  // each round`, `simdgroup_barrier(mem_flags::mem_threadgroup);`, races, exchange),
        drop("the places", "places[t] = t;", ["uninitialized-read"], /write it first/),
        outside(`places[${group}]`, `places[${group / 2}]`),
        outside("places[t + n]", "places[t + 2 * n]"),
        change("y[g] = places[0]", "y[0] = places[0]", ["device-race"], /one thread write it|two dispatches/),
      ],
    },
  );
}

function softmaxRow(random: Random): Program {
  const group = pick(random, [64, 96, 256]);
  const width = random.integer(group - 20, 3 * group);
  const simdgroups = group / 32;
  return program(
    "softmax of rows",
    `kernel void k(device const float* x, device float* y, constant uint& n, ${place}) {
  threadgroup float partial[${simdgroups}];
  device const float* row = x + g * n;
  float most = -INFINITY;
  for (uint j = t; j < n; j += ${group}) most = max(most, row[j]);
  most = simd_max(most);
  if (t % 32 == 0) partial[t / 32] = most;
  ${barrier}  // maxima
  for (uint j = 0; j < ${simdgroups}; j++) most = max(most, partial[j]);
  ${barrier}  // again
  float sum = 0;
  for (uint j = t; j < n; j += ${group}) sum += exp(row[j] - most);
  sum = simd_sum(sum);
  if (t % 32 == 0) partial[t / 32] = sum;
  ${barrier}  // sums
  float whole = 0;
  for (uint j = 0; j < ${simdgroups}; j++) whole += partial[j];
  for (uint j = t; j < n; j += ${group}) y[g * n + j] = exp(row[j] - most) / whole;
}`,
    {
      bindings: () => ({ x: floats(2 * width), y: new Float32Array(2 * width), n: Uint32Array.of(width) }),
      grid: 2 * group,
      threadgroup: group,
      mistakes: [
        drop("the barrier after the maxima", `${barrier}  // maxima`),
        drop("the barrier before partial is written again", `${barrier}  // again`),
        drop("the barrier after the sums", `${barrier}  // sums`),
        outside(`partial[${simdgroups}]`, `partial[${simdgroups - 1}]`),
        outside("x + g * n", "x + (g + 1) * n"),
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialise it/),
        outside("y[g * n + j]", "y[(g + 1) * n + j]"),
      ],
    },
  );
}

function halo(random: Random): Program {
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

function compaction(random: Random): Program {
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

function twoTiles(random: Random): Program {
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

function unpacking(random: Random): Program {
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

/** Every kind of program. */
export const programs: readonly ((random: Random) => Program)[] = [
  elementwise,
  neighbours,
  treeReduction,
  simdReduction,
  histogram,
  total,
  transpose,
  product,
  scan,
  bitonicSort,
  throughDevice,
  gather,
  vectors,
  window,
  lanes,
  matrices,
  largest,
  softmaxRow,
  halo,
  compaction,
  twoTiles,
  unpacking,
];
