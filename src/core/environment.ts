import { ArgumentError } from "./errors.ts";

/**
 * What an environment variable does. This table is the one declaration of all of them; docs/environment.md follows it.
 */
export interface EnvironmentVariable {
  /** What holds where the variable is unset or empty. */
  readonly fallback: string;
  readonly meaning: string;
}

/** Variables that the TypeScript side and the scripts read. */
const own = {
  ORCHARD_LIBRARY: {
    fallback: "the platform package's dylib, then `build/<platform>-<arch>`",
    meaning: "Path of the metal backend's dylib; if set, no other place is tried",
  },
  ORCHARD_CPU_LIBRARY: {
    fallback: "the same places",
    meaning: "Path of the cpu backend's dylib; if set, no other place is tried",
  },
  ORCHARD_CPU_ISA: {
    fallback: "the best that the CPU supports",
    meaning:
      "Instruction set of the cpu backend's kernels: `baseline`, `avx2`, `avx512`, `avx512_bf16` or `amx` (x86-64), " +
      "`neon`, `dotprod`, `fhm` or `bf16` (arm64). A dylib that `bun run demo` or `train` built in a fresh clone has " +
      "only the machine's; `bun run build` builds all",
  },
  ORCHARD_CPU_THREADS: { fallback: "the processors that this process may use", meaning: "Threads of the cpu backend" },
  ORCHARD_BLAS: {
    fallback: "Accelerate; on Linux the system's OpenBLAS, then the one that `setup` installed",
    meaning:
      "Path of a BLAS and LAPACK library for linear algebra, or `none` for the cpu backend's code. On macOS " +
      "`Accelerate` is a value too, and the library also computes every matmul of float32 and float64 (unset: those " +
      "that a table selects by size)",
  },
  ORCHARD_MPI: {
    fallback: "the launcher's: Open MPI, the standard ABI of MPI 5, or MPICH",
    meaning: "Path of the MPI library that `distributed.init()` loads",
  },
  ORCHARD_MPI_HEARTBEAT: {
    fallback: "20",
    meaning:
      "Seconds of silence after which a rank on another machine, or a stopped one on this machine, counts as lost",
  },
  ORCHARD_CPU_RECORD: {
    fallback: "no record",
    meaning: "Folder for a record of the cpu dylib's calls, which `bun run check:sanitize` replays",
  },
  ORCHARD_SKIP_METAL: {
    fallback: "0",
    meaning: "1: `setup`, `build`, `check` and `test` leave out all parts that require Swift, and say so",
  },
  ORCHARD_BACKEND: {
    fallback: "`metal` on Apple Silicon, else `cpu`",
    meaning: "The backend that operations try first: `metal`, `cpu` or `reference`",
  },
  ORCHARD_STRICT: {
    fallback: "0",
    meaning: "1: an operation that its first backend can't run is an error instead of falling back",
  },
  ORCHARD_SERVE_KEY: {
    fallback: "no key",
    meaning: "Key that clients of `orchard serve` must send; `--key` is the same, but visible in process listings",
  },
  ORCHARD_DEBUG: { fallback: "0", meaning: "1: every operation prints the backend that ran it, and why" },
  ORCHARD_DEBUG_FLASH_ATN: {
    fallback: "0",
    meaning:
      "1: every pass of `flashAttention` is logged on standard error, and counted in `flashattn_kernel_calls.log` in " +
      "the temporary folder",
  },
  ORCHARD_DEBUG_FLASHATN: { fallback: "0", meaning: "The same as `ORCHARD_DEBUG_FLASH_ATN`" },
  ORCHARD_TENSOR_PROFILE: {
    fallback: "0",
    meaning: "1: every allocation adds a line to `orchard_tensor_profile.log` in the temporary folder",
  },
  ORCHARD_TRACE: {
    fallback: "no trace",
    meaning: "File for a trace that Perfetto opens, replaced if it exists; `%p` in it becomes the process id",
  },
  ORCHARD_ATTENTION_TABLE: {
    fallback: "`orchard/attention.json` in the cache folder",
    meaning: "Path of the crossovers that `orchard tune` measures; `none`: the shipped ones",
  },
  ORCHARD_LINALG_TABLE: {
    fallback: "`orchard/linalg.json` in the cache folder",
    meaning: "The same for linear algebra: the size from which a large matrix is computed on metal",
  },
  ORCHARD_REPORT: { fallback: "`report`", meaning: "Folder for the reports of `bun run test`" },
  ORCHARD_FINDINGS: {
    fallback: "no record",
    meaning: "File to which each new finding of the checker is appended, as a line of JSON",
  },
  ORCHARD_TOKEN_CACHE_LIMIT: {
    fallback: "4294967296",
    meaning: "Bytes of the token cache, above which the least recently used files are removed; 0: no limit",
  },
  ORCHARD_MEMORY_LIMIT: {
    fallback: "what the system's limits allow",
    meaning: "Bytes that tensors may take on all backends together",
  },
  ORCHARD_SYSTEM_ROOT: {
    fallback: "`/`",
    meaning: "For tests: the folder whose `proc/self` and control groups say what this process may use",
  },
  ORCHARD_CPU_STORM: {
    fallback: "`150000:1`",
    meaning: "Number of hostile calls that tests make to the cpu dylib, then a colon and their seed",
  },
  HF_ENDPOINT: {
    fallback: "none: the command says that it needs it",
    meaning: "`orchard pull`: address of the hub to download models from",
  },
  HF_HOME: {
    fallback: "`~/.cache/huggingface`",
    meaning: "`orchard pull`: folder of the model cache, `hub`, shared with Hugging Face's tools",
  },
  HF_TOKEN: { fallback: "the file `token` in HF_HOME", meaning: "`orchard pull`: access token" },
  XDG_CACHE_HOME: {
    fallback: "`~/.cache`",
    meaning:
      "Folder whose `orchard/` holds the toolchain, OpenBLAS, compiled kernels, tokens of texts and packed tokenizers",
  },
} as const satisfies Record<string, EnvironmentVariable>;

/** Settings of the software device (Linux only). The dylib reads them; the names follow its table of settings. */
const softwareDevice = {
  ORCHARD_METAL_CHECK: {
    fallback: "0",
    meaning:
      "1: every dispatch runs under the checker, which prints each finding on standard error; a process with errors " +
      "exits with status 1. `report`: prints only",
  },
  ORCHARD_METAL_COUNT: {
    fallback: "0",
    meaning: "1: every dispatch is counted (bytes, operations, barriers), checked or not",
  },
  ORCHARD_METAL_WORKERS: {
    fallback: "the processors that this process may use",
    meaning: "Operating-system threads that run threadgroups",
  },
  ORCHARD_METAL_SEED: { fallback: "1", meaning: "Seed of the order in which threadgroups and SIMD-groups run" },
  ORCHARD_METAL_DENORMALS: { fallback: "keep", meaning: "`keep` or `flush`: what happens to float32 denormals" },
  ORCHARD_METAL_CONTRACT: { fallback: "0", meaning: "1: a multiplication and an addition may be fused" },
  ORCHARD_METAL_FAST: {
    fallback: "auto",
    meaning: "`auto`, `0` or `1`: Metal's fast math as the library asks, never, or always",
  },
  ORCHARD_METAL_POISON: {
    fallback: "auto",
    meaning:
      "Fresh device memory holds zeros (`0`) or NaN patterns (`1`); `auto`: zeros, which the checker tells from " +
      "written bytes",
  },
  ORCHARD_METAL_MAX_THREADS: { fallback: "1024", meaning: "Largest threadgroup that a pipeline reports" },
  ORCHARD_METAL_TIMEOUT_MS: { fallback: "60000", meaning: "Milliseconds after which a command buffer fails" },
  ORCHARD_METAL_COMPILE_TIMEOUT_MS: {
    fallback: "60000",
    meaning: "Milliseconds after which compiling kernels is aborted",
  },
  ORCHARD_METAL_SPIN_LIMIT: {
    fallback: "1000000",
    meaning: "Polls of one atomic after which a thread counts as spinning",
  },
  ORCHARD_METAL_STRICT: { fallback: "1", meaning: "0: libraries are compiled without the strict typing pass" },
  ORCHARD_METAL_CACHE: { fallback: "`orchard/kernels` in the cache folder", meaning: "Folder of compiled kernels" },
  ORCHARD_METAL_CACHE_LIMIT: {
    fallback: "536870912",
    meaning: "Bytes of that folder, above which the least recently used kernels are removed; 0: no limit",
  },
  ORCHARD_METAL_CLANG: { fallback: "the toolchain's, then PATH's", meaning: "The clang++ that compiles kernels" },
  ORCHARD_METAL_HEADERS: { fallback: "those in the dylib", meaning: "Folder of the Metal standard library's headers" },
  ORCHARD_METAL_MAX_FINDINGS: { fallback: "1000", meaning: "Findings that are kept; further ones are counted" },
  ORCHARD_METAL_ABORT_ON_MISUSE: {
    fallback: "1",
    meaning: "0: misuse of the API is reported instead of ending the process",
  },
  ORCHARD_METAL_MEMORY_LIMIT: { fallback: "0: what tensors may take", meaning: "Bytes of device memory in all" },
  ORCHARD_METAL_EXECUTE: {
    fallback: "1",
    meaning: "0: dispatches complete without running threads, to see quickly what large work allocates and encodes",
  },
  ORCHARD_METAL_WHOLE: {
    fallback: "0",
    meaning:
      "1: a library is rejected if the executing pass rejects any of its kernels, not when that kernel is first used",
  },
  ORCHARD_METAL_AFTER_FAULT: {
    fallback: "continue",
    meaning:
      "What a queue does after a failed command buffer: `continue` runs the next ones, `ignore` rejects them all, " +
      "`discard` ends the next one half way",
  },
} as const satisfies Record<string, EnvironmentVariable>;

export const environmentVariables = { ...own, ...softwareDevice };

/** The value of a declared variable; undefined where it is unset or empty. */
export function environment(
  name: keyof typeof environmentVariables,
  values: Record<string, string | undefined> = process.env,
): string | undefined {
  return values[name] || undefined;
}

/**
 * True for `1`; false for unset, empty and `0`. Anything else is a mistake worth stopping for. @throws {ArgumentError}
 */
export function environmentFlag(
  name: keyof typeof environmentVariables,
  values: Record<string, string | undefined> = process.env,
): boolean {
  const value = environment(name, values) ?? "0";
  if (value !== "0" && value !== "1")
    throw new ArgumentError("environment", "invalidSetting", `expected ${name} to be 0 or 1, got "${value}"`);
  return value === "1";
}
