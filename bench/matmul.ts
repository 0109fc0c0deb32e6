// Matrix products of the cpu backend beside the BLAS called directly, and the backend's own product on each instruction set.
import { dlopen } from "bun:ffi";
import type { DTypeName } from "../src/backend/cpu/abi.ts";
import { configure, cpuLibrary, defaultBlas } from "../src/backend/cpu/loader.ts";
import { cpuMatmul, type MatmulOperand } from "../src/backend/cpu/matmul.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { interleaved, type Measured, table } from "./measure.ts";

const { native } = cpuLibrary();
const { isa, isas, blas, threads } = cpuInfo(native);

const arrays = { float32: Float32Array, float64: Float64Array, float16: Uint16Array, int32: Int32Array } as const;
type Benched = keyof typeof arrays & DTypeName;

/** A batch of row-major matrices, of small numbers. */
function operand(dtype: Benched, rows: number, columns: number, batch: readonly number[]): MatmulOperand {
  const count = batch.reduce((product, size) => product * size, rows * columns);
  const storage = new arrays[dtype](count);
  for (let index = 0; index < count; index++) storage[index] = (index * 7919) % 13;
  return { storage, offset: 0, rowStride: columns, columnStride: 1, batchStrides: batch.map(() => rows * columns) };
}

interface Size {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: readonly number[];
}

const square = (size: number): Size => ({ m: size, n: size, k: size, batch: [] });
const sizeName = ({ m, n, k, batch }: Size) => [...batch, `${m}·${k}·${n}`].join(" × ");

function prepare(dtype: Benched, { m, n, k, batch }: Size) {
  const a = operand(dtype, m, k, batch);
  const b = operand(dtype, k, n, batch);
  const out = operand(dtype, m, n, batch);
  return () => cpuMatmul(native, { dtype, m, n, k, batchShape: batch, a, b, out }, "bench");
}

/** Calls that together take about ten milliseconds, so that a clock's step and the change of settings do not count. */
function repeated({ m, n, k, batch }: Size, call: () => void): { calls: number; run: () => void } {
  const operations = batch.reduce((product, size) => product * size, 2 * m * n * k);
  const calls = Math.max(1, Math.round(3e9 / operations));
  return {
    calls,
    run: () => {
      for (let index = 0; index < calls; index++) call();
    },
  };
}

const gigaflops = ({ m, n, k, batch }: Size, calls: number, { median }: Measured) =>
  (batch.reduce((product, size) => product * size, 2 * m * n * k) * calls) / median / 1e6;

/** cblas_sgemm itself, from the same library. */
function direct({ m, n, k, batch }: Size): (() => void) | undefined {
  if (!blas || batch.length > 0) return undefined;
  const path = process.platform === "darwin" ? "/System/Library/Frameworks/Accelerate.framework/Accelerate" : blas.path;
  const { cblas_sgemm } = dlopen(path, {
    cblas_sgemm: {
      args: [...Array(6).fill("i32"), "f32", "buffer", "i32", "buffer", "i32", "f32", "buffer", "i32"],
      returns: "void",
    },
  }).symbols;
  const [a, b, c] = [operand("float32", m, k, []), operand("float32", k, n, []), operand("float32", m, n, [])];
  return () => cblas_sgemm(101, 111, 111, m, n, k, 1, a.storage, k, b.storage, n, 0, c.storage, n);
}

function useOwn(chosen: string): void {
  configure(native, "blas", "none");
  configure(native, "isa", chosen);
}
function useBlas(): void {
  configure(native, "blas", defaultBlas().join("\n"));
  configure(native, "isa", isa);
}

/** One row: the rate of each way to compute the same product, measured in turn. */
function compare(dtype: Benched, size: Size, ownSets: readonly string[]): (string | number)[] {
  const own = prepare(dtype, size);
  const through = blas && (dtype === "float32" || dtype === "float64") ? own : undefined;
  const straight = dtype === "float32" ? direct(size) : undefined;
  const { calls } = repeated(size, own);
  const many = (call: () => void) => repeated(size, call).run;
  const set = (prepareWay: () => void, call: () => void) => () => {
    prepareWay();
    call();
  };
  const candidates = {
    ...(straight ? { direct: set(useBlas, many(straight)) } : {}),
    ...(through ? { blas: set(useBlas, many(through)) } : {}),
    ...Object.fromEntries(ownSets.map((name) => [name, set(() => useOwn(name), many(own))])),
  };
  const rates = new Map(interleaved(candidates).map((m) => [m.name, gigaflops(size, calls, m)]));
  useBlas();
  const shown = (name: string) => rates.get(name)?.toFixed(1) ?? "";
  const [straightRate, throughRate, best] = [rates.get("direct"), rates.get("blas"), rates.get(isa)];
  const share = (rate?: number) => (rate && straightRate ? (rate / straightRate).toFixed(2) : "");
  return [
    `${dtype} ${sizeName(size)}`,
    shown("direct"),
    shown("blas"),
    share(throughRate),
    ...isas.map(shown),
    share(best),
  ];
}

console.log(
  `Matrix products on the cpu backend (GFLOP/s, medians of 9 in turn, ${threads} threads, BLAS: ${blas?.path ?? "none"})`,
);
const rows = [
  compare("float32", square(1024), isas),
  ...[64, 128, 256, 512, 1000].map((size) => compare("float32", square(size), [isa])),
  compare("float32", { m: 1, n: 4096, k: 4096, batch: [] }, [isa]),
  compare("float32", { m: 4096, n: 1, k: 4096, batch: [] }, [isa]),
  compare("float32", { m: 32, n: 1024, k: 1024, batch: [] }, [isa]),
  compare("float32", { m: 64, n: 64, k: 64, batch: [64] }, [isa]),
  compare("float64", square(512), [isa]),
  compare("float16", square(1024), [isa]),
  compare("int32", square(512), [isa]),
];
console.log(table(["", "BLAS itself", "with BLAS", "ratio", ...isas, "own/BLAS"], rows));
console.log("ratio and own/BLAS: to the BLAS itself; the aims are 0.95 and 0.6 at 1024·1024·1024");
