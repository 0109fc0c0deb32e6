/** Detects whether an MPI launcher started this process, and finds the MPI library. */
import { dlopen } from "bun:ffi";
import { environment } from "../core/environment.ts";
import type { Family } from "./abi.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** A launcher's information about this process. */
export interface Launch {
  /** The launcher's family, if its variables show it. */
  readonly family: Exclude<Family, "MPI 5 ABI"> | undefined;
  /** The number of processes it started; undefined if unknown. */
  readonly size: number | undefined;
}

/** Returns the launcher that started this process as an MPI rank; undefined if there is none. */
export function launchOf(variables: Variables = process.env): Launch | undefined {
  const number = (name: string) => (variables[name] === undefined ? undefined : Number(variables[name]));
  if (variables["OMPI_COMM_WORLD_SIZE"] !== undefined)
    return { family: "Open MPI", size: number("OMPI_COMM_WORLD_SIZE") };
  if (variables["PMI_RANK"] !== undefined || variables["PMI_FD"] !== undefined)
    return { family: "MPICH", size: number("PMI_SIZE") };
  if (variables["PMIX_RANK"] !== undefined) return { family: undefined, size: number("SLURM_NTASKS") };
  return undefined;
}

const macFolders = ["/opt/homebrew/lib", "/usr/local/lib", "/opt/local/lib"] as const;

/** The names of the libraries on Linux: Open MPI's, then MPICH's in Debian and upstream. */
const names: Readonly<Record<Exclude<Family, "MPI 5 ABI">, readonly string[]>> = {
  "Open MPI": ["libmpi.so.40"],
  MPICH: ["libmpich.so.12", "libmpi.so.12"],
};
const standardNames = ["libmpi_abi.so.0", "libmpi_abi.so.1"] as const;

/** Returns the libraries to try, in order. */
export function candidates(launch: Launch | undefined = launchOf()): readonly string[] {
  const named = environment("ORCHARD_MPI");
  if (named !== undefined) return [named];
  if (process.platform === "darwin")
    return macFolders.flatMap((folder) => ["libmpi.dylib", "libmpi_abi.0.dylib"].map((name) => `${folder}/${name}`));
  const { family } = launch ?? {};
  const [first, second] = family === "MPICH" ? (["MPICH", "Open MPI"] as const) : (["Open MPI", "MPICH"] as const);
  return [...names[first], ...standardNames, ...names[second], "libmpi.so"];
}

/** Functions of the dynamic loader, which find data symbols. */
const loaderFunctions = {
  dlopen: { args: ["buffer", "i32"], returns: "ptr" },
  dlsym: { args: ["i64", "buffer"], returns: "ptr" },
  dlclose: { args: ["i64"], returns: "i32" },
} as const;

const RTLD_NOW = 2;
/** Open MPI's plugins search for its symbols in the global scope. */
const RTLD_GLOBAL = process.platform === "darwin" ? 8 : 0x100;

/** A loaded library. */
export interface Located {
  readonly path: string;
  readonly addressOf: (symbol: string) => number | null;
  /** Releases the library. The last release unloads it. */
  readonly close: () => void;
}

/** Loads the first available library; undefined if there is none. */
export function locate(paths: readonly string[] = candidates()): Located | undefined {
  const { symbols: loader } = dlopen(loaderPath(), loaderFunctions);
  for (const path of paths) {
    const handle = loader.dlopen(text(path), RTLD_NOW | RTLD_GLOBAL);
    if (handle === null) continue;
    if (loader.dlsym(handle, text("MPI_Init_thread")) === null) continue;
    return {
      path,
      addressOf: (symbol) => addressIn(loader.dlsym(handle, text(symbol))),
      close: () => void loader.dlclose(handle),
    };
  }
  return undefined;
}

/** Converts an address; null if there is no such symbol. */
const addressIn = (address: number | bigint | null): number | null => (address === null ? null : Number(address));

/** Returns the library of the loader's functions, which is separate in glibc before 2.34. */
function loaderPath(): string {
  if (process.platform === "darwin") return "/usr/lib/libSystem.B.dylib";
  for (const path of ["libc.so.6", "libdl.so.2"])
    try {
      dlopen(path, loaderFunctions).close();
      return path;
    } catch {
      // try the next one
    }
  return "libc.so";
}

let yields: (() => number) | undefined;

/** Yields the processor to waiting processes. */
export function yieldProcessor(): void {
  yields ??= dlopen(process.platform === "darwin" ? "/usr/lib/libSystem.B.dylib" : "libc.so.6", {
    sched_yield: { args: [], returns: "i32" },
  }).symbols.sched_yield;
  yields();
}

const text = (value: string): Buffer => Buffer.from(`${value}\0`);

/** Returns advice on what to install. */
export const installAdvice = (): string =>
  process.platform === "darwin"
    ? "install it with `brew install open-mpi`, or set ORCHARD_MPI to the path of libmpi"
    : "install it (Debian and Ubuntu: `apt install openmpi-bin`, or `mpich`), or set ORCHARD_MPI to the path of libmpi";
