import { type Pointer, read } from "bun:ffi";
import { environment } from "../../core/environment.ts";
import { ArgumentError, DisposedError } from "../../core/errors.ts";
import { aFunction, aPath, choice, either, flag, nothing, someNumber, text } from "../../core/kinds.ts";
import { processorLimit } from "../../core/limits.ts";
import { expectNothing, type Kind, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { StorageMode } from "../../tensor/memory.ts";
import { followMemoryLimit, limitOfMemory } from "../../tensor/reserve.ts";
import { OPEN_EXACT, Probe, Storage } from "./abi.ts";
import { emptyStruct, readStruct, writeBlock } from "./block.ts";
import { kernelText } from "./kernel_files.ts";
import { storageMode, wholeNumber } from "./kinds.ts";
import { layouts, type MetalStatistics } from "./layouts.ts";
import { library, type Native } from "./loader.ts";
import { type DispatchCounters, type Finding, type MetalReport, parseReport } from "./report.ts";
import { check, errorOf, readText } from "./status.ts";

/** Options of a {@link MetalContext}: storage mode, batching and limits. */
export interface MetalContextOptions {
  /** The default storage mode of buffers. Default `"shared"`. */
  storage?: StorageMode;
  /** Allocate exact lengths and never reuse buffers, so that the checker finds every overrun. Default: if it is on. */
  exact?: boolean;
  /** Number of operations after which a command buffer is committed. Default 40. */
  batchOperations?: number;
  /** Number of bound bytes after which a command buffer is committed. Default 40 MB. */
  batchBytes?: number;
  /**
   * Approximate number of additions and multiplications after which a command buffer is committed. Default 2^36, a
   * fraction of a second. The system ends command buffers that run for several seconds.
   */
  batchWork?: number;
  /** Maximum bytes of free buffers that are cached. Default: a quarter of the memory limit. */
  cacheLimit?: number;
  /** Maximum bytes of all buffers. Default: the device's recommended working set. */
  memoryLimit?: number;
  /** Cache folder of compiled pipelines; `null` disables the cache. */
  cacheFolder?: string | null;
  /** Maximum milliseconds to wait for the device in a read, a write or `close`. Default 600,000. */
  timeoutMs?: number;
  label?: string;
}

/** Facts about the device. */
export interface DeviceInfo {
  name: string;
  architecture: string;
  /** True for the software device on Linux. */
  isSoftware: boolean;
  system: string;
  families: string[];
  unifiedMemory: boolean;
  /** The recommended working set in bytes. */
  recommendedWorkingSet: number;
  maxBufferLength: number;
  maxThreadgroupMemory: number;
  maxThreadsPerThreadgroup: [number, number, number];
  maxInlineBytes: number;
  maxBuffers: number;
  /** The probed capabilities, if a probe ran. */
  capabilities: Record<
    "bfloat" | "simdReduction" | "simdMatrix" | "tensorOps",
    { supported: boolean; reason: string }
  > | null;
}

/** @internal */
export interface LibraryInfo {
  /** `reason` is the library's name, or why it can't be loaded. Null except on NVIDIA GPUs. */
  productLibrary: { supported: boolean; reason: string } | null;
}

/** The kinds of faults that tests can inject: an allocation, a library, a pipeline, a command buffer. */
export type FaultKind = "allocate" | "library" | "pipeline" | "command-buffer";

const encoder = new TextEncoder();

/**
 *  Longer than the device's time limit for a dispatch, so that the device's error comes first: it names the kernel and
 *  the line.
 */
const longestWaitMs = 600_000;

const contextParameters = parameters("MetalContext", {
  storage: named(storageMode, "shared"),
  exact: named(flag),
  batchOperations: named(wholeNumber),
  batchBytes: named(wholeNumber),
  batchWork: named(wholeNumber, 2 ** 36),
  cacheLimit: named(wholeNumber),
  memoryLimit: named(wholeNumber),
  cacheFolder: named(either(nothing, aPath)),
  timeoutMs: named(wholeNumber),
  label: named(text, "orchard"),
});
const settingValue: Kind<string | number | boolean> = {
  expected: "a string, a number or a boolean",
  parse: (value) =>
    typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : undefined,
};
const configureParameters = parameters("configure", { name: operand(text), value: operand(settingValue) });
const reportParameters = parameters("report", { clear: named(flag, false) });
const deviceInfoParameters = parameters("MetalContext.deviceInfo", { probe: named(flag, false) });
const waitParameters = parameters("MetalContext.wait", {
  ticket: optional(wholeNumber),
  timeoutMs: optional(wholeNumber, longestWaitMs),
});
const trimParameters = parameters("MetalContext.trim", { keepBytes: optional(wholeNumber, 0) });
const injectFaultParameters = parameters("MetalContext.injectFault", {
  kind: operand(choice("allocate", "library", "pipeline", "command-buffer")),
  skip: named(wholeNumber, 0),
  count: named(wholeNumber, 1),
  code: named(someNumber, 0),
});
const labeledParameters = parameters("MetalContext.labeled", {
  label: operand(text),
  body: operand(aFunction<() => unknown>()),
});
const captureParameters = parameters("MetalContext.capture", {
  path: operand(aPath),
  body: operand(aFunction<() => unknown>()),
});

/** @internal */
export const aContext: Kind<MetalContext> = {
  expected: "a MetalContext",
  parse: (value) => (value instanceof MetalContext ? value : undefined),
};

/** @internal A position in the report: the number of findings and of dispatches so far. */
export interface ReportMark {
  readonly findings: number;
  readonly dispatches: number;
}

/**
 * A device with its buffers, pipelines and stream of work. Most programs use {@link metalContext}, the shared one.
 *
 * @example
 * using context = new MetalContext();
 * context.report(); // the findings of the checker, and counts of dispatches
 *
 * @throws {BackendError} if the dylib or a device is missing, with a fix.
 */
export class MetalContext implements Disposable {
  /** @internal */ readonly native: Native;
  /** @internal */ readonly handle: number;
  private closed = false;
  private readonly unfollow?: () => void;
  /** @internal The default storage mode of buffers. */
  defaultStorage: StorageMode;
  /** @internal Maximum work of a command buffer. Longer kernels are split. */
  batchWork: number;
  private software: boolean | undefined;
  /** @internal Three u64 counters that the dylib increments: completed tickets, failed tickets and replaced queues. */
  readonly counterAddress: Pointer;
  private readonly ticketScratch = new BigUint64Array(1);
  private readonly kept: { findings: Finding[]; dispatches: DispatchCounters[]; notes: string[] } = {
    findings: [],
    dispatches: [],
    notes: [],
  };

  constructor(given?: MetalContextOptions) {
    const options = contextParameters([given]);
    this.native = library().native;
    this.defaultStorage = options.storage;
    this.batchWork = options.batchWork;
    const block = writeBlock(layouts.openOptions, {
      defaultStorage: Storage[this.defaultStorage],
      flags: (options.exact ?? checkerAsked()) ? OPEN_EXACT : 0,
      batchOperations: options.batchOperations,
      batchBytes: options.batchBytes,
      timeoutMs: options.timeoutMs,
      cacheLimit: options.cacheLimit === 0 ? 1 : options.cacheLimit,
      memoryLimit: options.memoryLimit ?? defaultMemoryLimit(),
      cacheFolder: options.cacheFolder ?? undefined,
      materializeSource: kernelText("runtime/materialize.metal"),
      label: options.label,
      batchWork: options.batchWork,
    });
    const out = new BigUint64Array(1);
    check(this.native, this.native.orchard_open(block, block.length, out), "open Metal");
    this.handle = Number(out[0]);
    check(this.native, this.native.orchard_completion_counter(this.handle, out), "open Metal");
    this.counterAddress = Number(out[0]) as Pointer;
    limitWorkers(this);
    if (options.memoryLimit === undefined && defaultMemoryLimit() !== undefined) this.unfollow = this.followLimit();
  }

  /** Follows the memory limit through a weak reference, so that unused contexts can be collected. */
  private followLimit(): () => void {
    const self = new WeakRef(this);
    return followMemoryLimit((count) => self.deref()?.configure("memory_limit", count));
  }

  /** True once {@link close} was called. */
  get isClosed(): boolean {
    return this.closed;
  }

  /** Waits for running work and frees everything. Objects of this context throw {@link DisposedError} afterwards. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.unfollow?.();
    check(this.native, this.native.orchard_close(this.handle), "close Metal");
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal Checks the status of a dylib call and throws its error. */
  call(operation: string, status: number): void {
    if (status !== 0) throw this.failure(operation, status);
  }

  private failure(operation: string, status: number): Error {
    if (this.closed) return new DisposedError(operation, "closed", "its Metal context was closed");
    return errorOf(this.native, status, operation);
  }

  /** True for the software device on Linux, which has a checker and counters. */
  get isSoftware(): boolean {
    this.software ??= this.deviceInfo().isSoftware;
    return this.software;
  }

  /** Whether the checker is on. */
  get isChecked(): boolean {
    return checkerIsOn && this.isSoftware;
  }

  /**
   *  Returns facts about the device; with `probe`, also its capabilities, determined by compiling and running kernels.
   */
  deviceInfo(options?: { probe?: boolean }): DeviceInfo;
  deviceInfo(...values: unknown[]): DeviceInfo {
    const { probe } = deviceInfoParameters(values);
    const { productLibrary, ...info } = this.infoWith(probe ? Probe.capabilities : 0);
    return info;
  }

  /** @internal Returns the vendor's libraries for an NVIDIA GPU. The first call loads them. */
  libraries(): LibraryInfo {
    const { productLibrary } = this.infoWith(Probe.libraries);
    return { productLibrary };
  }

  private infoWith(probe: number): DeviceInfo & LibraryInfo {
    const json = readText(this.native, "device info", (buffer, capacity, length) =>
      this.native.orchard_device_info(this.handle, probe, buffer, capacity, length),
    );
    return JSON.parse(json);
  }

  /** Commits the open command buffer. Returns the ticket (number) of the last command buffer; 0 if there was none. */
  commit(): number {
    this.call("commit", this.native.orchard_commit(this.handle, this.ticketScratch));
    return Number(this.ticketScratch[0]);
  }

  /** Blocks until a ticket, by default all work so far, is done. @throws {BackendError} `deviceFailed` or `timeout`. */
  wait(ticket?: number, timeoutMs?: number): void;
  wait(...values: unknown[]): void {
    const { ticket = this.commit(), timeoutMs } = waitParameters(values);
    if (ticket > 0) this.call("wait", this.native.orchard_ticket_wait(this.handle, ticket, timeoutMs));
  }

  /** As {@link wait}, but without blocking the event loop. Polls a counter in memory; native code never calls back. */
  finished(ticket?: number, timeoutMs?: number): Promise<void>;
  async finished(...values: unknown[]): Promise<void> {
    const { ticket = this.commit(), timeoutMs } = waitParameters(values);
    if (ticket > 0 && !this.isComplete(ticket)) this.commit();
    const deadline = performance.now() + timeoutMs;
    for (let polls = 0; !this.isComplete(ticket); polls++) {
      if (this.closed || performance.now() > deadline) break;
      await pause(polls);
    }
    this.wait(ticket, this.isComplete(ticket) ? timeoutMs : 1);
  }

  private isComplete(ticket: number): boolean {
    return read.u64(this.counterAddress, 0) >= BigInt(ticket);
  }

  /** Returns counts of allocations, encoded work, copies and compilations so far. */
  statistics(): MetalStatistics {
    const bytes = emptyStruct(layouts.statistics);
    this.call("statistics", this.native.orchard_statistics_get(this.handle, bytes, bytes.length));
    return readStruct<keyof MetalStatistics>(layouts.statistics, bytes);
  }

  /** Frees cached buffers until at most `keepBytes` are left. */
  trim(keepBytes?: number): void;
  trim(...values: unknown[]): void {
    const { keepBytes } = trimParameters(values);
    this.call("trim", this.native.orchard_trim(this.handle, keepBytes));
  }

  /**
   * Changes a setting, such as `"memory_limit"` or `"storage"` (the default storage mode: `"shared"` or `"private"`),
   * or on the software device `"check"` and `"seed"`.
   */
  configure(name: string, value: string | number | boolean): void {
    configureParameters([name, value]);
    const key = encoder.encode(name);
    const text = encoder.encode(typeof value === "boolean" ? (value ? "1" : "0") : String(value));
    this.call(`configure ${name}`, this.native.orchard_configure(this.handle, key, key.length, text, text.length));
    if (name === "storage") this.defaultStorage = value as StorageMode;
    if (name === "batch_work") this.batchWork = Number(value);
    if (name === "check") checkerIsOn = value === true || ["1", "report"].includes(String(value));
  }

  /** Returns notes, settings, and the checker's findings and counts since the last call with `clear`. */
  report(options?: { clear?: boolean }): MetalReport {
    const { clear } = reportParameters([options]);
    const { settings } = this.freshReport();
    const { findings, dispatches, notes } = this.kept;
    const whole = { settings, findings: [...findings], dispatches: [...dispatches], notes: [...notes] };
    if (clear) for (const list of [findings, dispatches, notes]) list.length = 0;
    return whole;
  }

  /** @internal Returns the entries recorded since the last call. {@link report} keeps them. */
  freshReport(): MetalReport {
    const json = readText(this.native, "report", (buffer, capacity, length) =>
      this.native.orchard_report(this.handle, 1, buffer, capacity, length),
    );
    const fresh = parseReport(json);
    this.kept.findings.push(...fresh.findings);
    this.kept.dispatches.push(...fresh.dispatches);
    this.kept.notes.push(...fresh.notes);
    return fresh;
  }

  /** @internal Marks a position in the report for {@link reportSince}. */
  reportMark(): ReportMark {
    this.freshReport();
    return { findings: this.kept.findings.length, dispatches: this.kept.dispatches.length };
  }

  /** @internal Returns the entries after a mark, except those that {@link report} cleared since. */
  reportSince(mark: ReportMark): Pick<MetalReport, "findings" | "dispatches"> {
    this.freshReport();
    const { findings, dispatches } = this.kept;
    const after = <Entry>(list: readonly Entry[], start: number) => list.slice(start > list.length ? 0 : start);
    return { findings: after(findings, mark.findings), dispatches: after(dispatches, mark.dispatches) };
  }

  /** Injects faults for tests: after `skip` further occurrences, `count` of them fail. */
  injectFault(kind: FaultKind, options?: { skip?: number; count?: number; code?: number }): void;
  injectFault(...values: unknown[]): void {
    const { kind, skip, count, code } = injectFaultParameters(values);
    const text = encoder.encode(kind);
    this.call("inject fault", this.native.orchard_inject_fault(this.handle, text, text.length, skip, count, code));
  }

  /** Labels the operations in `body` for messages, captures and reports. */
  labeled<Result>(label: string, body: () => Result): Result;
  labeled(...values: unknown[]): unknown {
    const { label, body } = labeledParameters(values);
    const text = encoder.encode(label);
    this.call("label", this.native.orchard_label_push(this.handle, text, text.length));
    try {
      return body();
    } finally {
      if (!this.closed) this.call("label", this.native.orchard_label_pop(this.handle));
    }
  }

  /** Captures the GPU work of `body` to a `.gputrace` at `path` (macOS, with `MTL_CAPTURE_ENABLED=1`). */
  capture<Result>(path: string, body: () => Result): Result;
  capture(...values: unknown[]): unknown {
    const { path, body } = captureParameters(values);
    const text = encoder.encode(path);
    this.call("capture", this.native.orchard_capture_begin(this.handle, text, text.length));
    try {
      return body();
    } finally {
      this.call("capture", this.native.orchard_capture_end(this.handle));
    }
  }
}

/** Waits for a turn of the event loop, longer after many polls. */
function pause(polls: number): Promise<void> {
  if (polls < 20) return new Promise((resolve) => setImmediate(resolve));
  return Bun.sleep(polls < 200 ? 1 : 5);
}

/**
 * Returns the default memory limit; undefined: the device's recommended working set. The software device uses the
 * machine's memory but does not know its limits.
 */
const defaultMemoryLimit = (): number | undefined =>
  environment("ORCHARD_METAL_MEMORY_LIMIT") === undefined && process.platform === "linux"
    ? limitOfMemory().count
    : undefined;

let areWorkersLimited = false;

/**
 *  Limits the software device's workers, since it knows the affinity mask but not control groups. All contexts share
 *  them.
 */
function limitWorkers(context: MetalContext): void {
  if (areWorkersLimited) return;
  areWorkersLimited = true;
  if (environment("ORCHARD_METAL_WORKERS") !== undefined || !context.isSoftware) return;
  context.configure("workers", Math.min(processorLimit().count, 1024));
}

/** Whether the environment variable enables the checker. The dylib reads it too. */
function checkerAsked(): boolean {
  const value = environment("ORCHARD_METAL_CHECK") ?? "0";
  if (["0", "1", "report"].includes(value)) return value !== "0";
  const sentence = `expected ORCHARD_METAL_CHECK to be 0, 1 or report, got "${value}"`;
  throw new ArgumentError("environment", "invalidSetting", sentence);
}

// The checker belongs to the device, so all contexts share it.
let checkerIsOn = checkerAsked();

// Checks unfinished work too, before the process ends.
if (checkerIsOn)
  process.on("exit", () => {
    try {
      if (shared && !shared.isClosed) shared.wait();
    } catch {} // a failed command buffer has a finding
  });

let shared: MetalContext | undefined;

/** @internal Whether the shared context is open. */
export const isMetalOpen = (): boolean => shared !== undefined && !shared.isClosed;

/**
 * Returns the shared context. It is opened at the first call, and again after it was closed.
 *
 * @example
 * metalContext().report(); // the checker's findings so far
 *
 * @throws {BackendError} if there is no Metal device.
 */
export function metalContext(): MetalContext;
export function metalContext(...values: unknown[]): MetalContext {
  expectNothing("metalContext", values);
  if (!shared || shared.isClosed) shared = new MetalContext();
  return shared;
}
