import { environment } from "../../core/environment.ts";
import { processorLimit } from "../../core/limits.ts";
import { cacheFolder, cpuLibraryName } from "../../core/paths.ts";
import { followMemoryLimit, limitOfMemory } from "../../tensor/reserve.ts";
import { type Candidate, candidatesOf, type LibraryDescription, type LoadedLibrary, loadFrom } from "../library.ts";
import { ABI_VERSION, declarations } from "./abi.ts";
import { recordCalls } from "./record.ts";
import { check } from "./status.ts";

type CpuLibrary = LoadedLibrary<typeof declarations>;
export type Native = CpuLibrary["native"];

const description: LibraryDescription<typeof declarations> = {
  backend: "cpu",
  fileName: cpuLibraryName,
  variable: "ORCHARD_CPU_LIBRARY",
  header: "orchard_cpu.h",
  abiVersion: ABI_VERSION,
  versionFunction: "orchard_cpu_abi_version",
  declarations,
};

/** Returns the paths to try for the cpu dylib. If `ORCHARD_CPU_LIBRARY` is set, it is the only one. */
export const cpuLibraryCandidates = (values?: Record<string, string | undefined>): Candidate[] =>
  candidatesOf(description, values);

/**
 * Loads the dylib, checks its interface version, and applies the environment's settings.
 *
 * @throws {BackendError} `libraryMissing`, `libraryUnusable` or `abiMismatch`, with the path and a fix.
 * @throws {ArgumentError} for a setting that the dylib rejects, with the variable's name.
 */
export function loadCpuLibrary(candidates: readonly Candidate[] = cpuLibraryCandidates()): CpuLibrary {
  const loaded = loadFrom(description, candidates);
  for (const [setting, { variable, otherwise }] of Object.entries(settings))
    configure(loaded.native, setting, environment(variable) ?? otherwise(), variable);
  if (forcesBlas(environment("ORCHARD_BLAS"))) configure(loaded.native, "products", "blas", "ORCHARD_BLAS");
  const limit = (count: number) => limitMemory(loaded.native, count);
  limit(limitOfMemory().count);
  followMemoryLimit(limit); // a dylib is never unloaded
  return loaded;
}

function limitMemory(native: Native, count: number): void {
  check(native, native.orchard_cpu_set_memory_limit(count), "cpu memory limit");
  check(native, native.orchard_cpu_set_cache_limit(Math.floor(count / 6)), "cpu cache limit");
}

let shared: CpuLibrary | undefined;

/** Returns the dylib, which is loaded at the first call and never unloaded, since calls into an unloaded one crash. */
export function cpuLibrary(): CpuLibrary {
  shared ??= recorded(loadCpuLibrary());
  return shared;
}

function recorded(library: CpuLibrary): CpuLibrary {
  const folder = environment("ORCHARD_CPU_RECORD");
  return folder ? { ...library, native: recordCalls(library.native, folder) } : library;
}

/** The dylib's settings (`orchard_cpu_configure`), with the environment variable and default of each. */
const settings = {
  isa: { variable: "ORCHARD_CPU_ISA", otherwise: () => "auto" },
  threads: { variable: "ORCHARD_CPU_THREADS", otherwise: () => "auto" },
  blas: { variable: "ORCHARD_BLAS", otherwise: () => defaultBlas().join("\n") },
} as const;
export type CpuSetting = keyof typeof settings;

/** Whether the BLAS computes every float32 and float64 product: on macOS, if one is specified. */
export const forcesBlas = (named: string | undefined, platform: string = process.platform): boolean =>
  platform === "darwin" && named !== undefined && named !== "none";

/** The system's OpenBLAS. */
export const systemBlas = "libopenblas.so.0";

/** Returns the OpenBLAS that `setup` installs; the number is the version of its recipe. */
export const broughtBlas = (): string => `${cacheFolder()}/blas/openblas-1/libopenblas.so.0`;

/** Returns the BLAS libraries to try in order: the system's, then the one that `setup` installed. */
export function defaultBlas(): string[] {
  if (process.platform === "darwin") return ["Accelerate"];
  return [systemBlas, broughtBlas()];
}

const encoder = new TextEncoder();

/** Changes one of the dylib's settings; `operation` names the caller, for errors. */
export function configure(native: Native, setting: string, value: string, operation = `cpu ${setting}`): void {
  // the dylib knows the affinity mask but not control groups
  const chosen = setting === "threads" && value === "auto" ? String(processorLimit().count) : value;
  const status = native.orchard_cpu_configure(encoder.encode(`${setting}\0`), encoder.encode(`${chosen}\0`));
  check(native, status, operation);
}
