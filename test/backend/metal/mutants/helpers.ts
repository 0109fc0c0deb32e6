/** Kernels with functions, templates, structures and constants, and with other atomics. */
import type { Random } from "../../../ops/samples.ts";
import {
  barrier,
  bounds,
  change,
  drop,
  floats,
  outside,
  type Program,
  pick,
  place,
  places,
  position,
  program,
} from "./program.ts";

/** A template with a host name and a helper that takes pointers. */
export function template(random: Random): Program {
  const type = pick(random, ["float", "half"] as const);
  const count = random.integer(50, 200);
  const steps = random.integer(2, 4);
  return program(
    "template with a helper",
    `template <typename T, int N> static T sum_of(device const T* from, uint step) {
  T total = 0;
  for (int j = 0; j < N; j++) total += from[j * step];
  return total;
}

template <typename T, int N> kernel void sums(device const T* x, device T* y, constant uint& n, ${position}) {
  if (i >= n) return;
  y[i] = sum_of<T, N>(x + i, n);
}

template [[host_name("k")]] kernel void sums<${type}, ${steps}>(
    device const ${type}*, device ${type}*, constant uint&, uint);`,
    {
      bindings: () => {
        const of = type === "half" ? Float16Array : Float32Array;
        return { x: of.from(floats(count * steps)), y: new of(count), n: Uint32Array.of(count) };
      },
      grid: Math.ceil((count + 1) / 32) * 32,
      threadgroup: 32,
      mistakes: [
        outside("if (i >= n) return;", ""),
        outside("i >= n", "i > n"),
        outside("j < N", "j <= N"),
        outside("(x + i, n)", "(x + i + n, n)"),
        change("T total = 0;", "T total;", ["uninitialized-read"], /initialize it/),
        change("y[i] =", "y[i / 2] =", ["device-race"], /one thread write it|barrier/),
      ],
    },
  );
}

/** Particles in an array of structures that are moved in place, and counted in a second structure. */
export function structures(random: Random): Program {
  const count = random.integer(40, 150);
  return program(
    "structures in place",
    `struct Particle { packed_float3 place; float mass; packed_float3 speed; uint alive; };
struct Settings { float step; uint count; };

static void advance(device Particle& p, float step) {
  p.place = float3(p.place) + step * float3(p.speed);
}

kernel void k(device Particle* particles, constant Settings& settings, device atomic_uint* alive, ${position}) {
  if (i >= settings.count) return;
  advance(particles[i], settings.step);
  if (particles[i].mass > 2) atomic_fetch_add_explicit(alive, 1u, memory_order_relaxed);
}`,
    {
      bindings: () => ({
        particles: floats(8 * count),
        settings: Uint32Array.of(0x3f000000, count),
        alive: new Uint32Array(1),
      }),
      grid: Math.ceil((count + 1) / 32) * 32,
      threadgroup: 32,
      mistakes: [
        outside("if (i >= settings.count) return;", ""),
        outside("i >= settings.count", "i > settings.count"),
        outside("advance(particles[i]", "advance(particles[i + 1]", ["device-race"]),
        change("advance(particles[i]", "advance(particles[0]", ["device-race"], /one thread|atomic|barrier/),
        change(
          "atomic_fetch_add_explicit(alive, 1u, memory_order_relaxed)",
          "*(device uint*)alive += 1",
          ["device-race"],
          /atomic/,
        ),
        outside("particles[i].mass", `particles[i + ${count}].mass`),
        outside("uint alive; };", "uint alive, more; };"),
      ],
    },
  );
}

/** A maximum: a reduction in each threadgroup, then an atomic. */
export function atomicLargest(random: Random): Program {
  const group = pick(random, [64, 96]);
  const groups = random.integer(2, 4);
  const [call, start] = pick(random, [
    ["max", 0],
    ["min", 0xffffffff],
  ] as const);
  return program(
    "extreme by an atomic",
    `kernel void k(device const uint* x, device atomic_uint* result, ${position}, ${place}) {
  threadgroup atomic_uint extreme;
  if (t == 0) atomic_store_explicit(&extreme, ${start}u, memory_order_relaxed);
  ${barrier}  // stored
  atomic_fetch_${call}_explicit(&extreme, x[i], memory_order_relaxed);
  ${barrier}  // all
  if (t == 0)
    atomic_fetch_${call}_explicit(result, atomic_load_explicit(&extreme, memory_order_relaxed), memory_order_relaxed);
}`,
    {
      bindings: () => ({
        x: places(group * groups).map((value) => value + 1), // the values include neither 0 nor 2³² − 1
        result: new Uint32Array(1).fill(start),
      }),
      grid: group * groups,
      threadgroup: group,
      mistakes: [
        change(
          `atomic_store_explicit(&extreme, ${start}u, memory_order_relaxed);`,
          ";",
          ["uninitialized-read"],
          /write it first/,
        ),
        change(
          `atomic_fetch_${call}_explicit(&extreme, x[i], memory_order_relaxed);`,
          `*(threadgroup uint*)&extreme = ${call}(*(threadgroup uint*)&extreme, x[i]);`,
          ["threadgroup-race"],
          /atomic/,
        ),
        outside("x[i]", `x[i + ${group}]`),
        outside("x[i]", "x[2 * i]"),
      ],
    },
  );
}

/** Compaction by ballots: each lane counts the passing lanes before it. */
export function ballot(random: Random): Program {
  const group = pick(random, [64, 96]);
  const simdgroups = group / 32;
  return program(
    "compaction by ballots",
    `kernel void k(device const uint* x, device uint* y, device uint* length, ${place},
                   uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint counts[${simdgroups}];
  const bool passes = x[t] % 3 == 0;
  const uint votes = uint(ulong(simd_ballot(passes)));
  if (lane == 0) counts[t / 32] = popcount(votes);
  ${barrier}
  uint start = 0;
  for (uint j = 0; j < t / 32; j++) start += counts[j];
  if (passes) y[start + popcount(votes & ((1u << lane) - 1))] = x[t];
  if (t == ${group - 1}) *length = start + counts[${simdgroups - 1}];
}`,
    {
      bindings: () => ({
        x: places(group),
        y: new Uint32Array([...places(group)].filter((value) => value % 3 === 0).length),
        length: new Uint32Array(1),
      }),
      grid: group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier, ["threadgroup-race", "uninitialized-read"]),
        outside(`counts[${simdgroups}]`, `counts[${simdgroups - 1}]`),
        outside("x[t] % 3 == 0;", "x[t] % 2 == 0;"),
        change("((1u << lane) - 1)", "1u", ["device-race"], /one thread write it|barrier/),
        outside("uint start = 0;", `uint start = ${group};`),
        outside("= x[t];", "= x[t + 64];"),
        outside(`counts[${simdgroups - 1}];`, `counts[${simdgroups}];`),
        drop("the counts", "counts[t / 32] = popcount(votes);", ["uninitialized-read"], /write it first/),
      ],
    },
  );
}

/** Interpolation in a table in constant memory: each thread also reads the next entry. */
export function table(random: Random): Program {
  const size = random.integer(6, 14);
  const entries = Array.from({ length: size }, (_, at) => `${at * at}.5f`).join(", ");
  const count = random.integer(40, 120);
  return program(
    "interpolation in a table",
    `constant float curve[${size}] = {${entries}};

kernel void k(device const float* x, device float* y, constant uint& n, ${position}) {
  if (i < n) {
    const float at = clamp(x[i] * 0.9f, 0.0f, ${size - 1}.0f);
    const int low = min(int(at), ${size - 2});
    y[i] = mix(curve[low], curve[low + 1], at - low);
  }
}`,
    {
      bindings: () => ({
        x: floats(count).map((value) => value + size),
        y: new Float32Array(count),
        n: Uint32Array.of(count),
      }),
      grid: Math.ceil((count + 1) / 32) * 32,
      threadgroup: 32,
      mistakes: [
        outside(`min(int(at), ${size - 2})`, "int(at)"),
        outside("curve[low + 1]", "curve[low + 2]"),
        outside(`min(int(at), ${size - 2})`, "int(x[i]) + 1"),
        outside("i < n", "i <= n"),
        outside("x[i] * 0.9f", "x[i + n] * 0.9f"),
        outside("y[i] =", "y[i + n] ="),
      ],
    },
  );
}

/** Sums of quads: lanes exchange values, and one lane of each quad stores the sum. */
export function quads(random: Random): Program {
  const count = 32 * random.integer(1, 3);
  return program(
    "sums of quads",
    `kernel void k(device const float* x, device float* y, ${position}, ushort q [[thread_index_in_quadgroup]]) {
  float v = x[i];
  v += quad_shuffle_xor(v, 1);
  v += quad_shuffle_xor(v, 2);
  if (q == 0) y[i / 4] = v;
}`,
    {
      bindings: () => ({ x: floats(count), y: new Float32Array(count / 4) }),
      grid: count,
      threadgroup: 32,
      mistakes: [
        change("if (q == 0) y[i / 4] = v;", "y[i / 4] = v + q;", ["device-race"], /one thread write it|barrier/),
        outside("y[i / 4]", "y[i / 2]"),
        outside("x[i]", "x[i + 8]"),
        change("quad_shuffle_xor(v, 2)", "quad_shuffle_xor(v, q)", ["nonuniform-argument"], /./),
        change("float v = x[i];", "float v;", ["uninitialized-read"], /initialize it/),
      ],
    },
  );
}

/** A threadgroup array with several types. Threads past the end return after the barrier. */
export function views(random: Random): Program {
  const group = pick(random, [32, 64]);
  const count = 2 * group - random.integer(1, group - 2);
  return program(
    "halves in a tile of floats",
    `kernel void k(device const float* x, device float* y, constant uint& n, ${position}, ${place}) {
  threadgroup float memory[${group}];
  threadgroup half* low = (threadgroup half*)memory;
  threadgroup half* high = low + ${group};
  low[t] = i < n ? half(x[i]) : half(0);
  high[t] = low[t] * 2;
  ${barrier}
  if (i >= n) return;
  y[i] = low[${group - 1} - t] + high[(t + 1) % ${group}];
}`,
    {
      bindings: () => ({ x: floats(count), y: new Float32Array(count), n: Uint32Array.of(count) }),
      grid: 2 * group,
      threadgroup: group,
      mistakes: [
        drop("the barrier", barrier),
        outside("i < n ? half(x[i]) : half(0)", "half(x[i])"),
        drop("the end of threads past the end", "if (i >= n) return;", ["out-of-bounds"], bounds),
        outside(`low + ${group}`, `low + ${2 * group}`),
        change(`low + ${group}`, `low + ${group / 2}`, ["threadgroup-race"], /barrier/),
        outside(`(t + 1) % ${group}`, "t + 1"),
        drop("the other half", "high[t] = low[t] * 2;", ["uninitialized-read"], /write it first/),
        change(barrier, `if (t % 2 == 0) ${barrier}`, ["barrier-divergence", "threadgroup-race"], /barrier/),
      ],
    },
  );
}
