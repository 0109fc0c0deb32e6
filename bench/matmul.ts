// Compares `matmul` of tensors on the cpu backend with direct calls of BLAS, and with the backend's built-in product on
// each instruction set.
import { dlopen } from "bun:ffi";
import { configure, cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../src/backend/policy.ts";
import { matmul } from "../src/ops/matmul/matmul.ts";
import { randint } from "../src/ops/random/randint.ts";
import { transpose } from "../src/ops/view/permute.ts";
import type { DType } from "../src/tensor/dtype.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { interleaved, type Measured, table } from "./support/measure.ts";

const { native } = cpuLibrary();
const { isa, isas, blas, threads } = cpuInfo(native);

interface Size {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: readonly number[];
  /** The layout of each factor in BLAS's notation: row-major (N) or transposed (T). Default NN. */
  readonly layout?: Layout;
}
type Layout = "NN" | "NT" | "TN";

const square = (size: number, batch: readonly number[] = []): Size => ({ m: size, n: size, k: size, batch });
const sizeName = ({ m, n, k, batch, layout }: Size) =>
  `${[...batch, `${m}·${k}·${n}`].join(" × ")}${layout ? ` ${layout}` : ""}`;

/**
 * The three products of a layer in training with `rows` tokens: the result, the gradient of the input, and the gradient
 * of the weights.
 */
const layer = (rows: number, from: number, to: number): Size[] => [
  { m: rows, k: from, n: to, batch: [], layout: "NT" },
  { m: rows, k: to, n: from, batch: [], layout: "NN" },
  { m: to, k: rows, n: from, batch: [], layout: "TN" },
];
const operationsOf = ({ m, n, k, batch }: Size) => batch.reduce((product, size) => product * size, 2 * m * n * k);

/** Small numbers, so that integers do not overflow. */
const operand = (dtype: DType, shape: readonly number[]): Tensor => randint(-8, 8, shape, { dtype });

/** Calls the public function, as a user does: the call creates the result, which is then disposed of. */
function through(dtype: DType, { m, n, k, batch, layout }: Size): () => void {
  const a = layout === "TN" ? transpose(operand(dtype, [...batch, k, m]), -2, -1) : operand(dtype, [...batch, m, k]);
  const b = layout === "NT" ? transpose(operand(dtype, [...batch, n, k]), -2, -1) : operand(dtype, [...batch, k, n]);
  return () => matmul(a, b).dispose();
}

/** Constants of cblas.h. */
const [byRows, plain, transposed] = [101, 111, 112];

/** Calls cblas_sgemm of the same library directly, with existing memory for the result. */
function direct({ m, n, k, batch, layout = "NN" }: Size): (() => void) | undefined {
  if (!blas || batch.length > 0) return undefined;
  const path = process.platform === "darwin" ? "/System/Library/Frameworks/Accelerate.framework/Accelerate" : blas.path;
  const { cblas_sgemm } = dlopen(path, {
    cblas_sgemm: {
      args: [...Array(6).fill("i32"), "f32", "buffer", "i32", "buffer", "i32", "f32", "buffer", "i32"],
      returns: "void",
    },
  }).symbols;
  const arrayOf = (rows: number, columns: number) => operand("float32", [rows, columns]).dataSync() as Float32Array;
  const [a, b, c] = [arrayOf(m, k), arrayOf(k, n), arrayOf(m, n)];
  const [first, second] = layout === "TN" ? [transposed, m] : [plain, k];
  const [third, fourth] = layout === "NT" ? [transposed, k] : [plain, n];
  return () => cblas_sgemm(byRows, first, third, m, n, k, 1, a, second, b, fourth, 0, c, n);
}

/**
 * Returns how many calls take about ten milliseconds, so that the clock's resolution and changes of settings do not
 * matter.
 */
const callsOf = (size: Size): number => Math.min(4000, Math.max(1, Math.round(3e9 / operationsOf(size))));

function repeated(calls: number, call: () => void): () => void {
  return () => {
    for (let index = 0; index < calls; index++) call();
  };
}

function useSet(chosen: string): void {
  configure(native, "products", "own");
  configure(native, "isa", chosen);
}
function useBlas(): void {
  configure(native, "products", "blas");
  configure(native, "isa", isa);
}

/** OpenBLAS's threads spin for about 20 ms while they wait for work, and would compete with the next measurement. */
const settle = (): void => Bun.sleepSync(30);

const prepared = (prepare: () => void, run: () => void) => () => {
  prepare();
  run();
};

/** Measures the ways to compute one product in alternating order: `direct`, `blas`, and instruction sets by name. */
function measure(dtype: DType, size: Size, sets: readonly string[]): Map<string, Measured> {
  const calls = callsOf(size);
  const product = repeated(calls, through(dtype, size));
  const straight = dtype === "float32" ? direct(size) : undefined;
  const hasBlas = blas && (dtype === "float32" || dtype === "float64");
  const candidates = {
    ...(straight ? { direct: prepared(useBlas, repeated(calls, straight)) } : {}),
    ...(hasBlas ? { blas: prepared(useBlas, product) } : {}),
    ...Object.fromEntries(sets.map((name) => [name, prepared(() => useSet(name), product)])),
  };
  const measured = new Map(interleaved(candidates, 9, settle).map((m) => [m.name, m]));
  useBlas();
  return measured;
}

const shown = (value: number | undefined, digits: number) => (value === undefined ? "" : value.toFixed(digits));

/** Returns the speed of each way in GFLOP/s. */
function rates(dtype: DType, size: Size, sets: readonly string[]): string[] {
  const measured = measure(dtype, size, sets);
  const rate = (name: string) => {
    const taken = measured.get(name)?.median;
    return taken && (operationsOf(size) * callsOf(size)) / taken / 1e6;
  };
  const share = (name: string) => {
    const [chosen, straight] = [rate(name), rate("direct")];
    return shown(chosen && straight && chosen / straight, 2);
  };
  const ways = ["direct", "blas"].map((name) => shown(rate(name), 1));
  return [
    `${dtype} ${sizeName(size)}`,
    ...ways,
    share("blas"),
    ...isas.map((name) => shown(rate(name), 1)),
    share(isa),
  ];
}

/** Returns the microseconds of one call. */
function costs(size: Size): string[] {
  const measured = measure("float32", size, [isa]);
  const cost = (name: string) => {
    const taken = measured.get(name)?.median;
    return shown(taken && (taken / callsOf(size)) * 1e3, 2);
  };
  return [`float32 ${sizeName(size)}`, ...["direct", "blas", isa].map(cost)];
}

const onCpu = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("cpu", body));

console.log(
  `matmul on the cpu backend (GFLOP/s, medians of 9 in turn, ${threads} threads, BLAS: ${blas?.path ?? "none"})`,
);
const rateRows = onCpu(() => [
  rates("float32", square(1024), isas),
  ...[64, 128, 256, 512, 1000].map((size) => rates("float32", square(size), [isa])),
  rates("float32", { m: 1, n: 4096, k: 4096, batch: [] }, [isa]),
  rates("float32", { m: 4096, n: 1, k: 4096, batch: [] }, [isa]),
  rates("float32", { m: 32, n: 1024, k: 1024, batch: [] }, [isa]),
  rates("float32", square(64, [64]), [isa]),
  rates("float64", square(512), [isa]),
  rates("float16", square(1024), [isa]),
  rates("bfloat16", square(1024), [isa]),
  rates("float16", square(64, [64]), [isa]),
  rates("int32", square(512), [isa]),
]);
console.log(table(["", "BLAS itself", "with BLAS", "ratio", ...isas, "dylib/BLAS"], rateRows));
console.log("ratio and dylib/BLAS: to the BLAS itself; the aims are 0.95 and 0.6 at 1024·1024·1024\n");
console.log("Layers of a small GPT in training");
const layers = [
  [128, 128],
  [128, 256],
  [128, 384],
  [128, 512],
  [512, 128],
] as const;
const layerRows = onCpu(() =>
  layers.flatMap(([from, to]) => layer(768, from, to)).map((size) => rates("float32", size, [isa])),
);
console.log(table(["", "BLAS itself", "with BLAS", "ratio", ...isas, "dylib/BLAS"], layerRows));
console.log("The cost of a small call (µs)");
const costRows = onCpu(() => [2, 8, 32].map((size) => costs(square(size))));
console.log(table(["", "BLAS itself", "with BLAS", "dylib"], costRows));
