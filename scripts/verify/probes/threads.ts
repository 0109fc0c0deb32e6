/** Tests SIMD-groups, matrices, barriers and threadgroup memory. */
import {
  compute,
  drawn,
  expectCompiles,
  expectNumbers,
  halfBits,
  kernelOf,
  NotChecked,
  type Probe,
  Refuted,
  requireVersion,
} from "../probe.ts";

const lanes = Array.from({ length: 32 }, (_, lane) => lane);

const simdWidth: Probe = () => {
  using kernel = kernelOf({ body: "y[i] = lane;", result: new Uint32Array(1) });
  const { threadExecutionWidth } = kernel.info;
  if (threadExecutionWidth !== 32)
    throw new Refuted(`expected a SIMD-group of 32 threads, got ${threadExecutionWidth}`);
  return "32 threads in a SIMD-group";
};

/** Tests only the attribute; whether registers then spill shows only in the time of a kernel that needs them. */
const registerLimit: Probe = () => {
  using kernel = kernelOf({
    body: "y[i] = lane;",
    attributes: "[[max_total_threads_per_threadgroup(512)]]",
    result: new Uint32Array(1),
  });
  const { maxTotalThreads } = kernel.info;
  if (maxTotalThreads !== 512) throw new Refuted(`expected at most 512 threads, got ${maxTotalThreads}`);
  return "a kernel with the attribute takes 512 threads";
};

/** Sums of the active lanes in both arms of a branch, in a loop that lanes leave one by one, and after it. */
const reconvergence: Probe = () => {
  const body = `int arm = lane < 11 ? simd_sum(1) : simd_sum(100);
    int total = 0;
    for (uint round = 0; round <= lane; ++round) total += simd_sum(1);
    y[lane] = arm + 10000 * (total + 1000 * simd_sum(1));`;
  const got = compute({ body, result: new Int32Array(32), threads: 32 });
  const rounds = (lane: number) => lanes.slice(0, lane + 1).reduce((sum, at) => sum + 32 - at, 0);
  const expected = lanes.map((lane) => (lane < 11 ? 11 : 2100) + 10_000 * (rounds(lane) + 32_000));
  expectNumbers(got, expected, (lane) => `lane ${lane}`);
  return "lanes meet again behind a branch and behind a loop";
};

const shuffleHalves: Probe = () => {
  const x = Float32Array.from(lanes, (lane) => lane * 1.5);
  const body = "y[lane] = simd_shuffle(x[lane], ushort(lane < 16 ? 5 : 21));";
  const got = compute({ body, inputs: { x }, result: new Float32Array(32), threads: 32 });
  expectNumbers(
    got,
    lanes.map((lane) => (lane < 16 ? 5 : 21) * 1.5),
    (lane) => `lane ${lane}`,
  );
  return "each half of a SIMD-group reads another lane";
};

/** The positions of a lane's `thread_elements()`, as MLX and others assume: two elements of a row. */
function firstElement(lane: number): number {
  const quad = lane >> 2;
  return ((quad & 4) + ((lane >> 1) % 4)) * 8 + (quad & 2) * 2 + (lane % 2) * 2;
}

const matrixLayout: Probe = () => {
  const expected = lanes.flatMap((lane) => [firstElement(lane), firstElement(lane) + 1]);
  for (const type of ["float", "half", "bfloat"]) {
    const body = `threadgroup ${type} tile[64];
      for (uint k = lane; k < 64; k += 32) tile[k] = ${type}(k);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      simdgroup_matrix<${type}, 8, 8> m;
      simdgroup_load(m, tile, 8);
      y[2 * lane] = float(m.thread_elements()[0]); y[2 * lane + 1] = float(m.thread_elements()[1]);`;
    const got = compute({ body, result: new Float32Array(64), threads: 32 });
    expectNumbers(got, expected, (index) => `${type}, lane ${index >> 1}`);
  }
  return "the usual layout, of float, half and bfloat";
};

/** Sums of powers of two, which round differently in every other order. */
const matrixAccumulation: Probe = () => {
  const draw = drawn(41);
  const power = () => (draw() < 0.5 ? -1 : 1) * 2 ** Math.floor(draw() * 30);
  const [a, b, c] = Array.from({ length: 3 }, () => Float32Array.from({ length: 64 }, power));
  const body = `simdgroup_float8x8 ma, mb, mc;
    simdgroup_load(ma, a, 8); simdgroup_load(mb, b, 8); simdgroup_load(mc, c, 8);
    simdgroup_multiply_accumulate(mc, ma, mb, mc);
    simdgroup_store(mc, y, 8);`;
  const got = compute({ body, inputs: { a: a, b: b, c: c }, result: new Float32Array(64), threads: 32 });
  const expected = Array.from({ length: 64 }, (_, at) => {
    const row = (at >> 3) * 8;
    const terms = Array.from({ length: 8 }, (_, k) => a[row + k] * b[k * 8 + (at % 8)]);
    return terms.reduce((sum, term) => Math.fround(sum + term), c[at]);
  });
  expectNumbers(got, expected, (index) => `element ${index}`);
  return "the addend, then eight terms in order, each sum rounded to float32";
};

/** Small whole numbers: their products and sums are exact in every type. */
const bfloatMatrix: Probe = () => {
  const draw = drawn(42);
  const whole = () => Math.floor(draw() * 9) - 4;
  const [a, b] = Array.from({ length: 2 }, () => Array.from({ length: 64 }, whole));
  const expected = Array.from({ length: 64 }, (_, at) =>
    Array.from({ length: 8 }, (_, k) => a[(at >> 3) * 8 + k] * b[k * 8 + (at % 8)]).reduce((x, y) => x + y),
  );
  for (const type of ["half", "bfloat"] as const) {
    const bits = (value: number) =>
      type === "half" ? halfBits(value) : new Uint16Array(new Float32Array([value]).buffer)[1];
    const body = `simdgroup_matrix<${type}, 8, 8> ma, mb; simdgroup_float8x8 sum(0.0f);
      simdgroup_load(ma, (device const ${type} *)a, 8); simdgroup_load(mb, (device const ${type} *)b, 8);
      simdgroup_multiply_accumulate(sum, ma, mb, sum);
      simdgroup_store(sum, y, 8);`;
    const inputs = { a: Uint16Array.from(a, bits), b: Uint16Array.from(b, bits) };
    const got = compute({ body, inputs, result: new Float32Array(64), threads: 32 });
    expectNumbers(
      got,
      expected.map((value) => value + 0),
      (index) => `${type}, element ${index}`,
    );
  }
  return "products of half and of bfloat with float sums";
};

/** Element (row, column) of a transposed matrix with origin (x, y) is in row x + column, column y + row of memory. */
const transposedOrigin: Probe = () => {
  const x = Float32Array.from({ length: 20 * 24 }, (_, index) => index);
  const body = `threadgroup float tile[480];
    for (uint k = lane; k < 480; k += 32) tile[k] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 m;
    simdgroup_load(m, x, 24, ulong2(5, 3)); simdgroup_store(m, y, 8);
    simdgroup_load(m, x, 24, ulong2(5, 3), true); simdgroup_store(m, y + 64, 8);
    simdgroup_store(m, tile, 24, ulong2(7, 6), true);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(m, tile + 7 * 24 + 6, 24); simdgroup_store(m, y + 128, 8);`;
  const got = compute({ body, inputs: { x }, result: new Float32Array(192), threads: 32 });
  const elements = (of: (row: number, column: number) => number) =>
    Array.from({ length: 64 }, (_, at) => of(at >> 3, at % 8));
  const expected = [
    ...elements((row, column) => (3 + row) * 24 + 5 + column),
    ...elements((row, column) => (5 + column) * 24 + 3 + row),
    ...elements((row, column) => (5 + row) * 24 + 3 + column),
  ];
  const parts = ["loaded", "loaded transposed", "stored transposed"];
  expectNumbers(got, expected, (index) => `${parts[index >> 6]}, element ${index % 64}`);
  return "origins are (column, row), and swapped with a transposed matrix";
};

/** Any row stride, from any element of threadgroup memory. */
const matrixStrides: Probe = () => {
  const body = `threadgroup float tile[8 * 37 + 40];
    for (uint stride = 8; stride < 38; stride += 7)
      for (uint first = 0; first < 5; first++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = lane; k < 8 * 37 + 40; k += 32) tile[k] = float(k);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_float8x8 m;
        simdgroup_load(m, tile + first, stride);
        simdgroup_store(m, y + 64 * (first + 5 * (stride / 7 - 1)), 8);
      }`;
  const cases = [8, 15, 22, 29, 36].flatMap((stride) => [0, 1, 2, 3, 4].map((first) => [stride, first] as const));
  const got = compute({ body, result: new Float32Array(64 * cases.length), threads: 32 });
  const expected = cases.flatMap(([stride, first]) =>
    Array.from({ length: 64 }, (_, at) => first + (at >> 3) * stride + (at % 8)),
  );
  expectNumbers(got, expected, (index) => `stride ${cases[index >> 6][0]} from element ${cases[index >> 6][1]}`);
  return `${cases.length} row strides and first elements`;
};

/** The last 24 of 64 threads end before the barrier. */
const endedThreads: Probe = () => {
  const body = `threadgroup float tile[64];
    if (t >= 40) return;
    tile[t] = float(t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = tile[39 - t];`;
  const got = compute({ body, result: new Float32Array(64), threads: 64, threadgroup: 64 });
  expectNumbers(
    got,
    Array.from({ length: 40 }, (_, index) => 39 - index),
    (index) => `thread ${index}`,
  );
  return "40 of 64 threads pass a barrier that the others ended before";
};

const deviceFence: Probe = () => {
  const rounds = 64;
  const body = `if (t == 0) y[${1024 * rounds}] = 0;
    for (uint round = 0; round < ${rounds}; round++) {
      y[1024 * round + t] = t * 3 + round;
      threadgroup_barrier(mem_flags::mem_device);
      uint other = y[1024 * round + (t + 511) % 1024];
      if (other != ((t + 511) % 1024) * 3 + round) y[${1024 * rounds}] = round + 1;
    }`;
  const got = compute({ body, result: new Uint32Array(1024 * rounds + 1), threads: 1024, threadgroup: 1024 });
  if (got.at(-1) !== 0) throw new Refuted(`in round ${got.at(-1)! - 1} a thread read the previous value`);
  return `1024 threads read each other's elements after a barrier, ${rounds} times`;
};

/** Shows that threadgroup memory may contain earlier data. If it happens to contain zeros, nothing is shown. */
const threadgroupContents: Probe = () => {
  const words = 4096;
  const fill = `threadgroup uint tile[${words}];
    for (uint k = t; k < ${words}; k += 256) tile[k] = 0xabcd0000u + k;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = tile[(t * 7) % ${words}];`;
  compute({ body: fill, result: new Uint32Array(65_536), threads: 65_536, threadgroup: 256 });
  const copy = `threadgroup uint tile[${words}];
    for (uint k = t; k < ${words}; k += 256) y[(i / 256) * ${words} + k] = tile[k];`;
  const got = compute({ body: copy, result: new Uint32Array(16 * words), threads: 16 * 256, threadgroup: 256 });
  const left = got.filter((word) => word !== 0).length;
  if (left === 0) throw new NotChecked("all memory that was read held zeros, which proves nothing");
  return `${left} of ${got.length} words that nobody had set were not zero`;
};

const weakExchange: Probe = () => {
  const body = `atomic_store_explicit((device atomic_uint *)y + 2 * i, 0, memory_order_relaxed);
    y[2 * i + 1] = 0;
    for (uint round = 0; round < 64; round++) {
      uint expected = round;
      if (!atomic_compare_exchange_weak_explicit((device atomic_uint *)y + 2 * i, &expected, round + 1,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        y[2 * i + 1]++;
        atomic_store_explicit((device atomic_uint *)y + 2 * i, round + 1, memory_order_relaxed);
      }
    }`;
  const got = compute({ body, result: new Uint32Array(2048), threads: 1024 });
  const failures = got.reduce((sum, count, index) => sum + (index % 2 === 0 ? 0 : count), 0);
  if (failures === 0) throw new NotChecked("none of 65,536 exchanges failed spuriously, which proves nothing");
  return `${failures} of 65,536 exchanges failed without cause`;
};

const coherence: Probe = () => {
  requireVersion("3.2");
  const fence = (order: string) => `atomic_thread_fence(mem_flags::mem_device, ${order}, thread_scope_device);`;
  const kernel = (qualified: string, more = "") =>
    `kernel void k(${qualified} float *x [[buffer(0)]]) { ${more} x[0] = 1; }`;
  return expectCompiles(
    {
      "coherent(device) before device": kernel("coherent(device) device"),
      "coherent(device) behind device": kernel("device coherent(device)"),
      "coherent(system)": kernel("coherent(system) device"),
      coherent: kernel("coherent device"),
      "a fence with acq_rel": kernel("coherent(device) device", fence("memory_order_acq_rel")),
      "a fence with seq_cst": kernel("coherent(device) device", fence("memory_order_seq_cst")),
    },
    "3.2",
  );
};

export const threadProbes = {
  "simd-width": simdWidth,
  "register-limit": registerLimit,
  reconvergence,
  "shuffle-halves": shuffleHalves,
  "matrix-layout": matrixLayout,
  "matrix-accumulation": matrixAccumulation,
  "bfloat-matrix": bfloatMatrix,
  "transposed-origin": transposedOrigin,
  "matrix-strides": matrixStrides,
  "ended-threads": endedThreads,
  "device-fence": deviceFence,
  "threadgroup-contents": threadgroupContents,
  "weak-exchange": weakExchange,
  coherence,
} satisfies Readonly<Record<string, Probe>>;
