import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import { cpuLibrary, cpuLibraryCandidates } from "../backend/cpu/loader.ts";
import { cpuInfo } from "../backend/cpu/report.ts";
import { deviceCommand } from "../backend/library.ts";
import { metalContext } from "../backend/metal/context.ts";
import { metalKernel } from "../backend/metal/kernel.ts";
import { ABI_VERSION } from "../backend/metal/layouts.ts";
import { libraryCandidates } from "../backend/metal/loader.ts";
import { productLibrary } from "../backend/metal/product_library.ts";
import { blasCommand, dylibCommand, isClone, orchardCommand, swiftCommand } from "../core/commands.ts";
import { environment } from "../core/environment.ts";
import { OrchardError } from "../core/errors.ts";
import { processorLimit } from "../core/limits.ts";
import { cacheFolder, platform } from "../core/paths.ts";
import { counted } from "../core/plural.ts";
import { installAdvice, locate } from "../distributed/locate.ts";
import { Mpi } from "../distributed/mpi.ts";
import { linalgTablePath, readLinalgTable } from "../linalg/crossover_file.ts";
import { readTable, tablePath } from "../ops/attention/crossover_file.ts";
import { convertCall } from "../ops/copy/primitive.ts";
import { installedGpuCompiler } from "./toolchain/gpu.ts";
import { cachedToolchains, findSwift, oldestSwift } from "./toolchain.ts";

/** A line of the report of `orchard doctor`. */
export interface Diagnosis {
  subject: string;
  /** `ok`; `note`: missing but optional; `missing`: something to fix. */
  state: "ok" | "note" | "missing";
  detail: string;
  /** The command that fixes it. */
  fix?: string;
}

/** Checks the machine, each backend (by computing something on it) and the caches. */
export function diagnose(folder: string): Diagnosis[] {
  return [
    machine(),
    { subject: packageFile.name, state: "ok", detail: packageFile.version },
    { subject: "bun", state: "ok", detail: Bun.version },
    compiler(),
    ...nvidiaGpu(),
    ...metal(),
    ...cpu(),
    ...crossovers(),
    mpi(),
    cache("compiled kernels", environment("ORCHARD_METAL_CACHE") ?? join(folder, "kernels")),
    cache("toolchains", join(folder, "toolchain")),
  ];
}

/** Formats the report as lines of text. */
export function formatDiagnoses(diagnoses: readonly Diagnosis[]): string {
  const marks = { ok: "✓", note: "·", missing: "✗" } as const;
  const widest = Math.max(...diagnoses.map(({ subject }) => subject.length));
  return diagnoses
    .map(
      ({ subject, state, detail, fix }) =>
        `${marks[state]} ${subject.padEnd(widest)}  ${detail}${fix ? `\n  ${" ".repeat(widest)}  fix: ${fix}` : ""}`,
    )
    .join("\n");
}

function machine(): Diagnosis {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = Math.round(totalmem() / 2 ** 30);
  const { count, source } = processorLimit();
  const cores = count < cpus().length ? `${count} of ${cpus().length} cores (${source})` : counted(count, "core");
  return {
    subject: "machine",
    state: "ok",
    detail: `${process.platform} ${process.arch}, ${model}, ${cores}, ${memory} GiB`,
  };
}

/**
 * Reports whether an NVIDIA GPU can run kernels, and names the GPUs and missing parts. Empty if the machine has no
 * driver.
 *
 * @param driver the folder in which the driver describes itself
 * @param values the environment variables
 */
export function nvidiaGpu(driver = "/proc/driver/nvidia", values = process.env): Diagnosis[] {
  if (process.platform !== "linux" || !existsSync(join(driver, "version"))) return [];
  const subject = "nvidia gpu";
  const names = [...new Bun.Glob("gpus/*/information").scanSync(driver)].flatMap(
    (path) => /^Model:\s*(.+?)\s*$/m.exec(readFileSync(join(driver, path), "utf8"))?.[1] ?? [],
  );
  const name = names.join(", ") || "a GPU";
  const compiler =
    environment("ORCHARD_METAL_GPU_CLANG", values) ?? installedGpuCompiler(join(cacheFolder(values), "gpu"));
  if (!compiler) {
    const detail = `${name}: the driver is installed, but not the compiler for its kernels`;
    return [{ subject, state: "note", detail, fix: orchardCommand("toolchain install --gpu") }];
  }
  const used = environment("ORCHARD_METAL_DEVICE", values)?.startsWith("nvidia");
  const use = used ? "used by the metal backend" : "ORCHARD_METAL_DEVICE=nvidia makes the metal backend use it";
  return [{ subject, state: "ok", detail: `${name}; ${use}; compiler: ${compiler}` }, ...(used ? products() : [])];
}

/** The library for matrix products on an NVIDIA GPU. Without it, they are slower. */
function products(): Diagnosis[] {
  const subject = "nvidia products";
  try {
    const { use, reason } = productLibrary();
    if (use) return [{ subject, state: "ok", detail: reason }];
    return [{ subject, state: "note", detail: `Orchard's kernels, which are slower: ${reason}` }];
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    return []; // the line of the metal backend says why it does not start
  }
}

function compiler(): Diagnosis {
  const found = findSwift();
  if (found) return { subject: "swift", state: "ok", detail: `${found.version}, ${found.swift}` };
  const [broken] = cachedToolchains();
  if (broken) {
    const fix = `rm -r ${broken}${isClone ? " && bun run setup" : ""}`; // `setup` skips folders that have a stamp
    return { subject: "swift", state: "note", detail: `the toolchain in ${broken} does not start`, fix };
  }
  return {
    subject: "swift",
    state: "note",
    detail: `Swift ${oldestSwift} or newer was not found`,
    fix: swiftCommand(),
  };
}

/** Checks the metal dylib and the device, and runs a kernel. */
function metal(): Diagnosis[] {
  const candidates = libraryCandidates();
  const named = candidates[0]?.origin === "ORCHARD_LIBRARY";
  // A build installs Swift first if it is missing.
  const fix = named ? "unset ORCHARD_LIBRARY" : dylibCommand();
  const place = candidates.find(({ path }) => existsSync(path));
  if (!place && !named && !isClone && process.platform !== "darwin") return [noDevice()];
  if (!place) return [{ subject: "metal", state: "missing", detail: `${candidates.at(-1)?.path} does not exist`, fix }];
  try {
    const { name, system, families, capabilities } = metalContext().deviceInfo({ probe: true });
    const device = `${name}, ${system}, ${families.at(-1) ?? "no family"}`;
    const can = Object.entries(capabilities ?? {}).map(
      ([what, { supported, reason }]) => `${what} ${supported ? "yes" : `no (${reason})`}`,
    );
    return [
      {
        subject: "metal",
        state: "ok",
        detail: `${device}; ${place.origin} dylib, orchard.h version ${ABI_VERSION}`,
      },
      { subject: "metal kernels", state: "ok", detail: computeSomething() },
      { subject: "metal can", state: "ok", detail: can.join(", ") },
    ];
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    return [{ subject: "metal", state: "missing", detail: error.message, fix: metalFix(error.message, fix) }];
  }
}

/**
 * Returns the command that fixes an error of the metal backend: without a compiler or linker, it installs the
 * toolchain.
 */
export const metalFix = (message: string, fallback: string, clone?: boolean): string =>
  /\bno (clang\+\+|linker) .*was found/.test(message) ? swiftCommand(clone) : fallback;

/** On Linux the metal backend is the software device, which is for development and comes in a separate package. */
function noDevice(): Diagnosis {
  const fix = deviceCommand();
  const detail = `the software device is not installed${fix ? "" : `: it has no package for ${platform}`}`;
  return { subject: "metal", state: "note", detail, ...(fix ? { fix } : {}) };
}

/** Checks the cpu backend's dylib and runs a conversion. */
function cpu(): Diagnosis[] {
  const place = cpuLibraryCandidates().find(({ path }) => existsSync(path));
  if (!place)
    return [
      {
        subject: "cpu",
        state: "missing",
        detail: `${cpuLibraryCandidates().at(-1)?.path} does not exist`,
        fix: dylibCommand(),
      },
    ];
  try {
    const { native } = cpuLibrary();
    const { isa, isas, threads, blas, lapack, blasProblems } = cpuInfo(native);
    const detail = `${isa} (of ${isas.join(", ")}), ${counted(threads, "thread")}; ${place.origin} dylib`;
    return [
      { subject: "cpu", state: "ok", detail },
      { subject: "cpu kernels", state: "ok", detail: convertSomething() },
      blas && lapack
        ? { subject: "cpu LAPACK", state: "ok", detail: `${lapack}, ${blas.path}` }
        : noLapack(blasProblems),
    ];
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    return [{ subject: "cpu", state: "missing", detail: error.message, fix: dylibCommand() }];
  }
}

/** `ORCHARD_BLAS=none` is a choice, so it needs no fix. */
function noLapack(problems: readonly string[]): Diagnosis {
  const detail = ["none: the built-in linear algebra is used", ...problems].join("; ");
  const diagnosis: Diagnosis = { subject: "cpu LAPACK", state: "note", detail };
  const named = environment("ORCHARD_BLAS");
  if (named === "none") return diagnosis;
  return { ...diagnosis, fix: named ? "unset ORCHARD_BLAS" : blasCommand() };
}

/** The MPI library that `distributed` would load. It is needed only for more than one process. */
function mpi(): Diagnosis {
  const subject = "mpi";
  const located = locate();
  if (!located)
    return { subject, state: "note", detail: "not found; needed only for more than one process", fix: installAdvice() };
  const library = new Mpi(located);
  return { subject, state: "ok", detail: `${library.version()}, ${library.family}'s interface, ${located.path}` };
}

/** The crossover tables by which attention and linear algebra choose a backend or kernel. */
function crossovers(): Diagnosis[] {
  const tables = [
    { subject: "attention", path: tablePath(), ...readTable() },
    { subject: "linalg", path: linalgTablePath(), ...readLinalgTable() },
  ];
  return tables.map(({ subject, path, date, problem }): Diagnosis => {
    const fix = orchardCommand("tune");
    if (problem) return { subject, state: "note", detail: `shipped crossovers: ${problem}`, fix };
    const detail =
      date === undefined
        ? `shipped crossovers; \`${fix}\` measures this machine`
        : `crossovers measured ${date}, ${path}`;
    return { subject, state: "ok", detail };
  });
}

function convertSomething(): string {
  const started = performance.now();
  const half = new Uint16Array(2);
  const values = { from: "float32", to: "float16", fromOffset: 0, toOffset: 0, count: 2 } as const;
  convertCall("doctor", values, [new Float32Array([0.1, 65_504]), half]);
  const [x, y] = new Float16Array(half.buffer);
  if (x !== Math.f16round(0.1) || y !== 65_504)
    throw new OrchardError(
      "doctor",
      "wrongResult",
      `0.1 and 65504 in float16: got ${x} and ${y}, expected ${Math.f16round(0.1)} and 65504`,
    );
  return `0.1 is ${x} in float16, computed in ${(performance.now() - started).toFixed(1)} ms`;
}

function computeSomething(): string {
  using kernel = metalKernel({
    name: "squares",
    source:
      "#include <metal_stdlib>\n" +
      "kernel void squares(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= x[i]; }",
  });
  const started = performance.now();
  const { x } = kernel.run({ x: new Float32Array([3, 4]) }, { grid: 2 }).outputs;
  const right = x[0] === 9 && x[1] === 16;
  if (!right)
    throw new OrchardError(
      "doctor",
      "wrongResult",
      `the squares of 3 and 4: got ${x.join(" and ")}, expected 9 and 16`,
    );
  return `3² + 4² = ${(x[0] ?? 0) + (x[1] ?? 0)}, computed in ${(performance.now() - started).toFixed(1)} ms`;
}

function cache(subject: string, folder: string): Diagnosis {
  if (!existsSync(folder)) return { subject, state: "note", detail: `${folder} is empty` };
  const names = readdirSync(folder);
  // Another process may remove a file meanwhile.
  const sizeOf = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
  const bytes = names.reduce((sum, name) => sum + sizeOf(name), 0);
  const size = bytes > 1e6 ? `, ${(bytes / 1e6).toFixed(0)} MB` : "";
  return { subject, state: "ok", detail: `${folder}: ${counted(names.length, "entry", "entries")}${size}` };
}
