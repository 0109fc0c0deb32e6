/** Threads of a threadgroup that work in rounds: reductions, scans, sorts. */
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
  places,
  position,
  program,
  races,
} from "./program.ts";

export function treeReduction(random: Random): Program {
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

export function simdReduction(random: Random): Program {
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
        change("float total = 0;", "float total;", ["uninitialized-read"], /initialize it/),
      ],
    },
  );
}

export function histogram(random: Random): Program {
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

export function scan(random: Random): Program {
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

export function bitonicSort(random: Random): Program {
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

export function largest(random: Random): Program {
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

export function softmaxRow(random: Random): Program {
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
        change("float sum = 0;", "float sum;", ["uninitialized-read"], /initialize it/),
        outside("y[g * n + j]", "y[(g + 1) * n + j]"),
      ],
    },
  );
}
