/** Calls LAPACK's routines directly, from the library that the cpu backend uses. */
import { dlopen } from "bun:ffi";
import { cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";

type Argument = number | string | Int32Array | Float32Array;

/** A routine with its arguments, which are converted to memory once. */
type Bind = (values: readonly Argument[]) => () => void;

/** Returns a routine by its Fortran name, without the precision's letter; undefined if there is no LAPACK. */
function routine(name: string, texts: number, count: number): Bind | undefined {
  const { blas, lapack } = cpuInfo(cpuLibrary().native);
  if (!blas || !lapack) return undefined;
  const isApple = process.platform === "darwin";
  const path = isApple ? "/System/Library/Frameworks/Accelerate.framework/Accelerate" : blas.path;
  const symbol = isApple ? `s${name}$NEWLAPACK` : `s${name}_`;
  const args = [...Array<"buffer">(count).fill("buffer"), ...Array<"u64">(texts).fill("u64")];
  const call = dlopen(path, { [symbol]: { args, returns: "void" } }).symbols[symbol] as (...values: unknown[]) => void;
  const lengths = Array<bigint>(texts).fill(1n); // Fortran compilers expect the length of each string at the end
  const passed = (value: Argument): unknown => {
    if (typeof value === "number") return new Int32Array([value]);
    return typeof value === "string" ? Buffer.from(value) : value;
  };
  return (values) => {
    const all = [...values.map(passed), ...lengths];
    return () => call(...all);
  };
}

/**
 * Sets the library's number of threads, if it can be set. The cpu backend keeps it at one, and sets it for each of its
 * calls, so comparisons set the same number and then restore it.
 */
export function useThreads(count: number): void {
  const { blas } = cpuInfo(cpuLibrary().native);
  if (blas?.name !== "OpenBLAS") return;
  const set = { openblas_set_num_threads: { args: ["i32"], returns: "void" } } as const;
  dlopen(blas.path, set).symbols.openblas_set_num_threads(count);
}

/** Queries the size of a routine's workspace, and of its integer workspace if it has one. */
function workspace(query: (work: Float32Array, integers: Int32Array) => void): [Float32Array, Int32Array] {
  const [work, integers] = [new Float32Array(1), new Int32Array(1)];
  query(work, integers);
  return [new Float32Array(Math.ceil(work[0]) + 1), new Int32Array(integers[0] + 1)];
}

/**
 * Returns a function that factorizes a square matrix in place, so each call needs a fresh copy; undefined if there is
 * no LAPACK, or for other names.
 */
export function direct(name: string, n: number, a: Float32Array): (() => void) | undefined {
  const info = new Int32Array(1);
  if (name === "cholesky") {
    const potrf = routine("potrf", 1, 5);
    return potrf?.(["U", n, a, n, info]);
  }
  if (name === "luFactor") {
    const getrf = routine("getrf", 0, 6);
    const pivots = new Int32Array(n);
    return getrf?.([n, n, a, n, pivots, info]);
  }
  if (name === "qr") return directQr(n, a, info);
  if (name === "eigh") return directEigh(n, a, info);
  return name === "svd" ? directSvd(n, a, info) : undefined;
}

function directQr(n: number, a: Float32Array, info: Int32Array): (() => void) | undefined {
  const [geqrf, orgqr] = [routine("geqrf", 0, 8), routine("orgqr", 0, 9)];
  const [tau, copy] = [new Float32Array(n), new Float32Array(n * n)];
  if (!geqrf || !orgqr) return undefined;
  const [work] = workspace((asked) => geqrf([n, n, copy, n, tau, asked, -1, info])());
  const factorize = geqrf([n, n, a, n, tau, work, work.length, info]);
  const form = orgqr([n, n, n, a, n, tau, work, work.length, info]);
  return () => {
    factorize();
    form();
  };
}

function directEigh(n: number, a: Float32Array, info: Int32Array): (() => void) | undefined {
  const syevd = routine("syevd", 2, 11);
  const values = new Float32Array(n);
  if (!syevd) return undefined;
  const [work, integers] = workspace((asked, whole) =>
    syevd(["V", "U", n, a, n, values, asked, -1, whole, -1, info])(),
  );
  return syevd(["V", "U", n, a, n, values, work, work.length, integers, integers.length, info]);
}

function directSvd(n: number, a: Float32Array, info: Int32Array): (() => void) | undefined {
  const gesdd = routine("gesdd", 1, 14);
  const [values, u, vt] = [new Float32Array(n), new Float32Array(n * n), new Float32Array(n * n)];
  if (!gesdd) return undefined;
  const integers = new Int32Array(8 * n);
  const [work] = workspace((asked) => gesdd(["S", n, n, a, n, values, u, n, vt, n, asked, -1, integers, info])());
  return gesdd(["S", n, n, a, n, values, u, n, vt, n, work, work.length, integers, info]);
}
