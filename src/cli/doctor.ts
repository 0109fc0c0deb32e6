import { existsSync, readdirSync, statSync } from "node:fs";
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
import { blasCommand, dylibCommand, isClone, orchardCommand, swiftCommand } from "../core/commands.ts";
import { environment } from "../core/environment.ts";
import { OrchardError } from "../core/errors.ts";
import { processorLimit } from "../core/limits.ts";
import { platform } from "../core/paths.ts";
import { counted } from "../core/plural.ts";
import { installAdvice, locate } from "../distributed/locate.ts";
import { Mpi } from "../distributed/mpi.ts";
import { linalgTablePath, readLinalgTable } from "../linalg/crossover_file.ts";
import { readTable, tablePath } from "../ops/attention/crossover_file.ts";
import { convertCall } from "../ops/copy/primitive.ts";
import { cachedToolchains, findSwift, oldestSwift } from "./toolchain.ts";

/** One line of the doctor's report. */
export interface Diagnosis {
  subject: string;
  /** `ok`, something that is missing but not needed, or something to fix. */
  state: "ok" | "note" | "missing";
  detail: string;
  /** The command that fixes it. */
  fix?: string;
}

/** Looks at the machine, at each backend by computing something on it, and at the caches. */
export function diagnose(cacheFolder: string): Diagnosis[] {
  return [
    machine(),
    { subject: packageFile.name, state: "ok", detail: packageFile.version },
    { subject: "bun", state: "ok", detail: Bun.version },
    compiler(),
    ...metal(),
    ...cpu(),
    ...crossovers(),
    mpi(),
    cache("compiled kernels", environment("ORCHARD_METAL_CACHE") ?? join(cacheFolder, "kernels")),
    cache("toolchains", join(cacheFolder, "toolchain")),
  ];
}

/** The report as lines of text. */
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

function compiler(): Diagnosis {
  const found = findSwift();
  if (found) return { subject: "swift", state: "ok", detail: `${found.version}, ${found.swift}` };
  const [broken] = cachedToolchains();
  if (broken) {
    const fix = `rm -r ${broken}${isClone ? " && bun run setup" : ""}`; // set-up takes what is whole by its stamp
    return { subject: "swift", state: "note", detail: `the one in ${broken} does not start`, fix };
  }
  return { subject: "swift", state: "note", detail: `there is no Swift ${oldestSwift} or newer`, fix: swiftCommand() };
}

/** The dylib, the device, and a kernel that really runs. */
function metal(): Diagnosis[] {
  const candidates = libraryCandidates();
  const named = candidates[0]?.origin === "ORCHARD_LIBRARY";
  // A build brings Swift first where there is none.
  const fix = named ? "unset ORCHARD_LIBRARY" : dylibCommand();
  const place = candidates.find(({ path }) => existsSync(path));
  if (!place && !named && !isClone && process.platform !== "darwin") return [noDevice()];
  if (!place) return [{ subject: "metal", state: "missing", detail: `there is no ${candidates.at(-1)?.path}`, fix }];
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
    return [{ subject: "metal", state: "missing", detail: error.message, fix }];
  }
}

/** On Linux the metal backend is the software device, for development, in a package of its own. */
function noDevice(): Diagnosis {
  const fix = deviceCommand();
  const detail = `the software device is not installed${fix ? "" : `: it has no package for ${platform}`}`;
  return { subject: "metal", state: "note", detail, ...(fix ? { fix } : {}) };
}

/** The cpu backend's dylib, and a conversion that really runs. */
function cpu(): Diagnosis[] {
  const place = cpuLibraryCandidates().find(({ path }) => existsSync(path));
  if (!place)
    return [
      {
        subject: "cpu",
        state: "missing",
        detail: `there is no ${cpuLibraryCandidates().at(-1)?.path}`,
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

/** Nothing is to be fixed where the environment says `none`. */
function noLapack(problems: readonly string[]): Diagnosis {
  const detail = ["none: the backend's own linear algebra serves", ...problems].join("; ");
  const diagnosis: Diagnosis = { subject: "cpu LAPACK", state: "note", detail };
  const named = environment("ORCHARD_BLAS");
  if (named === "none") return diagnosis;
  return { ...diagnosis, fix: named ? "unset ORCHARD_BLAS" : blasCommand() };
}

/** The library that `distributed` would load; nothing needs it on one machine. */
function mpi(): Diagnosis {
  const subject = "mpi";
  const located = locate();
  if (!located) return { subject, state: "note", detail: "none, for more than one process", fix: installAdvice() };
  const library = new Mpi(located);
  return { subject, state: "ok", detail: `${library.version()}, ${library.family}'s interface, ${located.path}` };
}

/** The tables by which attention and linear algebra are routed. */
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
    throw new OrchardError("doctor", "wrongResult", `0.1 and 65504 came out as ${x} and ${y} in float16`);
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
  if (!right) throw new OrchardError("doctor", "wrongResult", `the squares of 3 and 4 came out as ${x.join(" and ")}`);
  return `3² + 4² = ${(x[0] ?? 0) + (x[1] ?? 0)}, computed in ${(performance.now() - started).toFixed(1)} ms`;
}

function cache(subject: string, folder: string): Diagnosis {
  if (!existsSync(folder)) return { subject, state: "note", detail: `${folder} is empty` };
  const names = readdirSync(folder);
  // Another process may remove a file at any moment.
  const sizeOf = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
  const bytes = names.reduce((sum, name) => sum + sizeOf(name), 0);
  const size = bytes > 1e6 ? `, ${(bytes / 1e6).toFixed(0)} MB` : "";
  return { subject, state: "ok", detail: `${folder}: ${counted(names.length, "entry", "entries")}${size}` };
}
