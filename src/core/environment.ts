import { ArgumentError } from "./errors.ts";

/** Describes an environment variable. The tables below declare all variables; docs/environment.md repeats them. */
export interface EnvironmentVariable {
  /** The behavior if the variable is unset or empty. */
  readonly fallback: string;
  readonly meaning: string;
}

/** Variables that the TypeScript side and the scripts read. */
const variables = {
  ORCHARD_LIBRARY: {
    fallback: "the platform package's dylib, then `build/<platform>-<arch>`",
    meaning: "Path of the metal backend's dylib",
  },
  ORCHARD_CPU_LIBRARY: { fallback: "the same places", meaning: "Path of the cpu backend's dylib" },
  ORCHARD_CPU_ISA: {
    fallback: "the best that the CPU supports",
    meaning:
      "Instruction set of the cpu backend's kernels: `baseline`, `avx2`, `avx512`, `avx512_bf16` or `amx` (x86-64), " +
      "`neon`, `dotprod`, `fhm` or `bf16` (arm64). On a fresh clone, `bun run demo` and `train` build only that of " +
      "the machine; `bun run build` builds all",
  },
  ORCHARD_CPU_THREADS: { fallback: "the processors that this process may use", meaning: "Threads of the cpu backend" },
  ORCHARD_BLAS: {
    fallback: "Accelerate; on Linux the system's OpenBLAS, then `setup`'s",
    meaning:
      "Path of a BLAS and LAPACK library for linear algebra. On macOS, where `Accelerate` is also accepted, it runs " +
      "every float32 and float64 matrix product too (unset: those of sizes in a table). `none`: built-in code",
  },
  ORCHARD_MPI: {
    fallback: "the launcher's: Open MPI, the standard ABI of MPI 5, or MPICH",
    meaning: "Path of the MPI library",
  },
  ORCHARD_MPI_HEARTBEAT: {
    fallback: "20",
    meaning:
      "Seconds of silence after which a rank on another machine, or a stopped one on this machine, counts as lost",
  },
  ORCHARD_NCCL: {
    fallback: "`libnccl.so.2`, if every rank has an NVIDIA GPU",
    meaning: "Path of the NCCL library, which exchanges gradients between GPUs. `none`: MPI does",
  },
  ORCHARD_CUBLAS: {
    fallback: "`libcublasLt.so.13`, then `.12`, on an NVIDIA GPU",
    meaning: "Path of the cuBLASLt library, which multiplies matrices on NVIDIA GPUs. `none`: Orchard's kernels do",
  },
  ORCHARD_CPU_RECORD: {
    fallback: "no record",
    meaning: "Folder to record the cpu dylib's calls in, for `bun run check:sanitize`",
  },
  ORCHARD_SKIP_METAL: {
    fallback: "0",
    meaning: "1: `setup`, `build`, `check` and `test` skip everything that requires Swift",
  },
  ORCHARD_BACKEND: {
    fallback: "`metal` on Apple Silicon, else `cpu`",
    meaning: "The first backend to try: `metal`, `cpu` or `reference`",
  },
  ORCHARD_STRICT: { fallback: "0", meaning: "1: errors instead of fallbacks to another backend" },
  ORCHARD_SEED: {
    fallback: "the system's entropy",
    meaning: "Seed of the random numbers of a program that does not call `manualSeed`",
  },
  ORCHARD_SERVE_KEY: {
    fallback: "no key",
    meaning: "API key that clients of `orchard serve` must send; unlike `--key`, it is not visible in process listings",
  },
  ORCHARD_DEBUG: { fallback: "0", meaning: "1: each operation prints its backend, and why" },
  ORCHARD_DEBUG_FLASH_ATN: {
    fallback: "0",
    meaning:
      "1: each pass of `flashAttention` is logged to standard error and counted in `flashattn_kernel_calls.log` in " +
      "the temporary folder",
  },
  ORCHARD_DEBUG_FLASHATN: { fallback: "0", meaning: "The same as `ORCHARD_DEBUG_FLASH_ATN`" },
  ORCHARD_TENSOR_PROFILE: {
    fallback: "0",
    meaning: "1: each allocation is logged to `orchard_tensor_profile.log` in the temporary folder",
  },
  ORCHARD_TRACE: {
    fallback: "no trace",
    meaning: "File to write a Perfetto trace to; `%p` in it becomes the process ID",
  },
  ORCHARD_ATTENTION_TABLE: {
    fallback: "`orchard/attention.json` in the cache folder",
    meaning: "Path of the crossovers measured by `orchard tune`; `none`: the shipped ones",
  },
  ORCHARD_LINALG_TABLE: {
    fallback: "`orchard/linalg.json` in the cache folder",
    meaning: "The same for linear algebra: matrix sizes from which metal is used",
  },
  ORCHARD_REPORT: {
    fallback: "`report`",
    meaning: "Folder to which `bun run test` writes its reports",
  },
  ORCHARD_FINDINGS: {
    fallback: "no record",
    meaning: "File to which the checker's findings are appended as lines of JSON",
  },
  ORCHARD_TOKEN_CACHE_LIMIT: {
    fallback: "4294967296",
    meaning: "Size limit in bytes of the cache of tokenized texts; 0: no limit",
  },
  ORCHARD_MEMORY_LIMIT: {
    fallback: "[from the system's limits](#memory)",
    meaning: "Maximum bytes of tensors on all backends together",
  },
  ORCHARD_SYSTEM_ROOT: {
    fallback: "`/`",
    meaning: "For tests: the folder whose `proc/self` and control groups define the limits",
  },
  ORCHARD_CPU_STORM: {
    fallback: "`150000:1`",
    meaning: "For tests: the number of hostile calls to the cpu dylib, and their seed",
  },
  HF_ENDPOINT: {
    fallback: "`https://huggingface.co`",
    meaning: "URL of the hub to download models from",
  },
  HF_HOME: { fallback: "`huggingface` in XDG_CACHE_HOME", meaning: "Folder of Hugging Face's tools" },
  HF_HUB_CACHE: { fallback: "`hub` in HF_HOME", meaning: "Folder of the model cache" },
  HF_HUB_OFFLINE: { fallback: "0", meaning: "1: models are loaded only from the cache" },
  HF_TOKEN: { fallback: "the file at HF_TOKEN_PATH", meaning: "Access token for the hub" },
  HF_TOKEN_PATH: { fallback: "`token` in HF_HOME", meaning: "File with the access token" },
  XDG_CACHE_HOME: {
    fallback: "`~/.cache`",
    meaning: "Folder whose subfolder `orchard` holds the toolchain, OpenBLAS, compiled kernels and tokenized texts",
  },
} as const satisfies Record<string, EnvironmentVariable>;

/** Settings of the software device (Linux only). The dylib reads them; the names match its table of settings. */
export const softwareDevice = {
  ORCHARD_METAL_CHECK: {
    fallback: "0",
    meaning:
      "1: dispatches run under the [checker](checker.md#turn-it-on), and a process with errors exits with status 1; " +
      "`report`: with an unchanged status",
  },
  ORCHARD_METAL_COUNT: { fallback: "0", meaning: "1: bytes, operations and barriers of every dispatch are counted" },
  ORCHARD_METAL_WORKERS: {
    fallback: "the processors that this process may use",
    meaning: "Number of threads that run threadgroups",
  },
  ORCHARD_METAL_SEED: { fallback: "1", meaning: "Seed of the order in which threadgroups and SIMD-groups run" },
  ORCHARD_METAL_DENORMALS: { fallback: "keep", meaning: "`keep` or `flush`: what happens to float32 denormals" },
  ORCHARD_METAL_CONTRACT: { fallback: "0", meaning: "1: a multiplication and an addition may be fused" },
  ORCHARD_METAL_FAST: {
    fallback: "auto",
    meaning: "Metal's fast math: `auto`: as the library requests; `0`: never; `1`: always",
  },
  ORCHARD_METAL_POISON: {
    fallback: "auto",
    meaning:
      "New device memory holds zeros (`0`) or NaN patterns (`1`); `auto`: zeros, which the checker treats as unwritten",
  },
  ORCHARD_METAL_MAX_THREADS: { fallback: "1024", meaning: "Largest threadgroup that a pipeline reports" },
  ORCHARD_METAL_TIMEOUT_MS: { fallback: "60000", meaning: "Milliseconds after which a command buffer fails" },
  ORCHARD_METAL_COMPILE_TIMEOUT_MS: {
    fallback: "60000",
    meaning: "Milliseconds after which compiling kernels fails",
  },
  ORCHARD_METAL_SPIN_LIMIT: {
    fallback: "1000000",
    meaning: "Polls of one atomic after which a thread counts as spinning",
  },
  ORCHARD_METAL_STRICT: { fallback: "1", meaning: "0: libraries are compiled without the strict typing pass" },
  ORCHARD_METAL_CACHE: { fallback: "`orchard/kernels` in the cache folder", meaning: "Folder of compiled kernels" },
  ORCHARD_METAL_CACHE_LIMIT: { fallback: "536870912", meaning: "Size limit in bytes of that folder; 0: no limit" },
  ORCHARD_METAL_CLANG: { fallback: "the toolchain's, then PATH's", meaning: "The clang++ that compiles kernels" },
  ORCHARD_METAL_HEADERS: {
    fallback: "those that come with the dylib",
    meaning: "Folder of the Metal standard library's headers",
  },
  ORCHARD_METAL_MAX_FINDINGS: { fallback: "1000", meaning: "Number of findings that are kept" },
  ORCHARD_METAL_ABORT_ON_MISUSE: { fallback: "1", meaning: "0: misuse of the API is reported but not fatal" },
  ORCHARD_METAL_MEMORY_LIMIT: {
    fallback: "0: the limit of tensors",
    meaning: "Maximum bytes of device memory",
  },
  ORCHARD_METAL_EXECUTE: { fallback: "1", meaning: "0: dispatches complete without running a thread" },
  ORCHARD_METAL_WHOLE: {
    fallback: "0",
    meaning: "1: a library fails to compile if the executing pass rejects any of its kernels, even an unused one",
  },
  ORCHARD_METAL_AFTER_FAULT: {
    fallback: "continue",
    meaning:
      "After a command buffer fails, a queue runs the next ones (`continue`), rejects all (`ignore`), or stops the " +
      "next one half way (`discard`)",
  },
  ORCHARD_METAL_DEVICE: {
    fallback: "software",
    meaning:
      "`nvidia` or `nvidia:<number>`: the metal backend runs on an [NVIDIA GPU](gpu.md), by default the first, or " +
      "for ranks of MPI the GPU of their number",
  },
  ORCHARD_METAL_GPU_CLANG: {
    fallback: "that of `orchard toolchain install --gpu`",
    meaning: "The clang++ that compiles kernels for NVIDIA GPUs",
  },
  ORCHARD_METAL_GPU_COMPILE: {
    fallback: "0",
    meaning: "1: pipelines are also compiled for NVIDIA GPUs, to fill the cache",
  },
  ORCHARD_METAL_GPU_GRAPHS: {
    fallback: "0",
    meaning: "1: kernels that repeat on an NVIDIA GPU are launched as CUDA graphs",
  },
  ORCHARD_METAL_CUDA: {
    fallback: "`libcuda.so.1`",
    meaning: "The NVIDIA driver's library",
  },
} as const satisfies Record<string, EnvironmentVariable>;

export const environmentVariables = { ...variables, ...softwareDevice };

/** Returns the value of a declared variable; undefined if it is unset or empty. */
export function environment(
  name: keyof typeof environmentVariables,
  values: Record<string, string | undefined> = process.env,
): string | undefined {
  return values[name] || undefined;
}

/** Returns true for `1`, and false for unset, empty and `0`. @throws {ArgumentError} for any other value */
export function environmentFlag(
  name: keyof typeof environmentVariables,
  values: Record<string, string | undefined> = process.env,
): boolean {
  const value = environment(name, values) ?? "0";
  if (value !== "0" && value !== "1")
    throw new ArgumentError("environment", "invalidSetting", `expected ${name} to be 0 or 1, got "${value}"`);
  return value === "1";
}
