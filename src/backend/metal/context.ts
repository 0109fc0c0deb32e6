import { type Pointer, read } from "bun:ffi";
import { environment } from "../../core/environment.ts";
import { ArgumentError, DisposedError } from "../../core/errors.ts";
import { aFunction, aPath, choice, either, flag, nothing, someNumber, text } from "../../core/kinds.ts";
import { processorLimit } from "../../core/limits.ts";
import { expectNothing, type Kind, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { StorageMode } from "../../tensor/memory.ts";
import { followMemoryLimit, limitOfMemory } from "../../tensor/reserve.ts";
import { OPEN_EXACT, Storage } from "./abi.ts";
import { emptyStruct, readStruct, writeBlock } from "./block.ts";
import { kernelText } from "./kernel_files.ts";
import { storageMode, wholeNumber } from "./kinds.ts";
import { layouts, type MetalStatistics } from "./layouts.ts";
import { library, type Native } from "./loader.ts";
import { type DispatchCounters, type Finding, type MetalReport, parseReport } from "./report.ts";
import { check, errorOf, readText } from "./status.ts";

/** Options of a {@link MetalContext}: where its buffers live, how it batches, and its limits. */
export interface MetalContextOptions {
  /** Where buffers live that name no storage of their own. Default `"shared"`. */
  storage?: StorageMode;
  /** Allocate exact lengths and never reuse a buffer, so that the checker sees every bound. Default: when it is on. */
  exact?: boolean;
  /** Operations in a command buffer before it is committed. Default 40. */
  batchOperations?: number;
  /** Bytes bound in a command buffer before it is committed. Default 40 MB. */
  batchBytes?: number;
  /**
   * Operations of kernels in a command buffer before it is committed, roughly: additions and multiplications. Default
   * 2^36, a fraction of a second: after some seconds the system ends a command buffer.
   */
  batchWork?: number;
  /** Bytes of free buffers that are kept for reuse. Default: a quarter of the memory limit. */
  cacheLimit?: number;
  /** Bytes of buffers in all. Default: the device's recommended working set. */
  memoryLimit?: number;
  /** Folder of compiled pipelines; `null` keeps none. */
  cacheFolder?: string | null;
  /** Longest wait for the device inside a read, a write or `close`, in milliseconds. Default 600,000. */
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
  /** In bytes. */
  recommendedWorkingSet: number;
  maxBufferLength: number;
  maxThreadgroupMemory: number;
  maxThreadsPerThreadgroup: [number, number, number];
  maxInlineBytes: number;
  maxBuffers: number;
  /** What a probe found, where one ran. */
  capabilities: Record<
    "bfloat" | "simdReduction" | "simdMatrix" | "tensorOps",
    { supported: boolean; reason: string }
  > | null;
}

/** What can be made to fail, for tests of what happens then: an allocation, a library, a pipeline, a command buffer. */
export type FaultKind = "allocate" | "library" | "pipeline" | "command-buffer";

const encoder = new TextEncoder();

/** Longer than the device's limit for one dispatch, whose error names the kernel and the line. */
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
const labelledParameters = parameters("MetalContext.labelled", {
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

/** @internal How long the lists of the report were. */
export interface ReportMark {
  readonly findings: number;
  readonly dispatches: number;
}

/**
 * One device with its buffers, its pipelines and its stream of work. Most programs use {@link metalContext}, the one
 * that is shared.
 *
 * @throws {BackendError} where the dylib or a device is missing; the message says how to fix it.
 */
export class MetalContext implements Disposable {
  /** @internal */ readonly native: Native;
  /** @internal */ readonly handle: number;
  private closed = false;
  private readonly unfollow?: () => void;
  /** @internal Where buffers live that name no storage of their own. */
  defaultStorage: StorageMode;
  /** @internal The most work of a command buffer, by which long kernels are cut. */
  batchWork: number;
  private software: boolean | undefined;
  /** @internal Three u64 that the dylib raises: tickets complete, tickets failed, and queues that were replaced. */
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

  /** Weakly: a context that nobody has is garbage. */
  private followLimit(): () => void {
    const self = new WeakRef(this);
    return followMemoryLimit((count) => self.deref()?.configure("memory_limit", count));
  }

  /** True once {@link close} was called. */
  get isClosed(): boolean {
    return this.closed;
  }

  /**
   * Waits for what runs and frees everything; what belongs to this context throws {@link DisposedError} from then on.
   */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.unfollow?.();
    check(this.native, this.native.orchard_close(this.handle), "close Metal");
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal Calls the dylib and throws what went wrong. */
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

  /** True where the checker watches the dispatches. */
  get isChecked(): boolean {
    return checkerIsOn && this.isSoftware;
  }

  /** Facts about the device; with `probe`, also its capabilities, each found by compiling and running a kernel. */
  deviceInfo(options?: { probe?: boolean }): DeviceInfo;
  deviceInfo(...values: unknown[]): DeviceInfo {
    const { probe } = deviceInfoParameters(values);
    const json = readText(this.native, "device info", (buffer, capacity, length) =>
      this.native.orchard_device_info(this.handle, probe ? 1 : 0, buffer, capacity, length),
    );
    return JSON.parse(json) as DeviceInfo;
  }

  /**
   * Commits what is open and returns the number of the last command buffer, its ticket; 0 where there never was one.
   */
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

  /** As {@link wait}, without blocking the event loop: a counter in memory is polled, native code never calls back. */
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

  /** What was allocated, encoded, copied and compiled so far. */
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
   * Changes a setting, such as `"memory_limit"` or `"storage"` (where memory lives that has no hint of its own:
   * `"shared"` or `"private"`), or on the software device `"check"` and `"seed"`.
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

  /** Notes, settings, and what the checker found and counted since the last call that cleared. */
  report(options?: { clear?: boolean }): MetalReport {
    const { clear } = reportParameters([options]);
    const { settings } = this.freshReport();
    const { findings, dispatches, notes } = this.kept;
    const whole = { settings, findings: [...findings], dispatches: [...dispatches], notes: [...notes] };
    if (clear) for (const list of [findings, dispatches, notes]) list.length = 0;
    return whole;
  }

  /** @internal What was recorded since the last call, which {@link report} keeps. */
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

  /** @internal A place in the report: what {@link reportSince} gives for it was recorded after this call. */
  reportMark(): ReportMark {
    this.freshReport();
    return { findings: this.kept.findings.length, dispatches: this.kept.dispatches.length };
  }

  /** @internal Of what {@link report} cleared in between, nothing is left. */
  reportSince(mark: ReportMark): Pick<MetalReport, "findings" | "dispatches"> {
    this.freshReport();
    const { findings, dispatches } = this.kept;
    const after = <Entry>(list: readonly Entry[], start: number) => list.slice(start > list.length ? 0 : start);
    return { findings: after(findings, mark.findings), dispatches: after(dispatches, mark.dispatches) };
  }

  /** Makes occurrences fail, to test what happens then: after `skip` further ones, `count` of them. */
  injectFault(kind: FaultKind, options?: { skip?: number; count?: number; code?: number }): void;
  injectFault(...values: unknown[]): void {
    const { kind, skip, count, code } = injectFaultParameters(values);
    const text = encoder.encode(kind);
    this.call("inject fault", this.native.orchard_inject_fault(this.handle, text, text.length, skip, count, code));
  }

  /** Names the operations inside `body` in messages, captures and reports. */
  labelled<Result>(label: string, body: () => Result): Result;
  labelled(...values: unknown[]): unknown {
    const { label, body } = labelledParameters(values);
    const text = encoder.encode(label);
    this.call("label", this.native.orchard_label_push(this.handle, text, text.length));
    try {
      return body();
    } finally {
      if (!this.closed) this.call("label", this.native.orchard_label_pop(this.handle));
    }
  }

  /** Writes what `body` does on the GPU to a `.gputrace` at `path` (macOS, with `MTL_CAPTURE_ENABLED=1`). */
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

/** A turn of the event loop, longer ones when it takes long. */
function pause(polls: number): Promise<void> {
  if (polls < 20) return new Promise((resolve) => setImmediate(resolve));
  return Bun.sleep(polls < 200 ? 1 : 5);
}

/**
 * Undefined: the device's recommended working set. The software device's memory is the machine's, of which it knows no
 * limit.
 */
const defaultMemoryLimit = (): number | undefined =>
  environment("ORCHARD_METAL_MEMORY_LIMIT") === undefined && process.platform === "linux"
    ? limitOfMemory().count
    : undefined;

let areWorkersLimited = false;

/** The software device knows the process's affinity mask, and no control groups. Its workers are all contexts'. */
function limitWorkers(context: MetalContext): void {
  if (areWorkersLimited) return;
  areWorkersLimited = true;
  if (environment("ORCHARD_METAL_WORKERS") !== undefined || !context.isSoftware) return;
  context.configure("workers", Math.min(processorLimit().count, 1024));
}

/** Whether the variable asks for the checker; the dylib reads it too. */
function checkerAsked(): boolean {
  const value = environment("ORCHARD_METAL_CHECK") ?? "0";
  if (["0", "1", "report"].includes(value)) return value !== "0";
  const sentence = `expected ORCHARD_METAL_CHECK to be 0, 1 or report, got "${value}"`;
  throw new ArgumentError("environment", "invalidSetting", sentence);
}

// The checker is the device's, and so all contexts'.
let checkerIsOn = checkerAsked();

// What nobody waited for is checked as well, before the process ends.
if (checkerIsOn)
  process.on("exit", () => {
    try {
      if (shared && !shared.isClosed) shared.wait();
    } catch {} // a command buffer that failed has its finding
  });

let shared: MetalContext | undefined;

/** @internal Whether the process's context is open now. */
export const isMetalOpen = (): boolean => shared !== undefined && !shared.isClosed;

/** The process's context, opened at the first call, and again after it was closed. */
export function metalContext(): MetalContext;
export function metalContext(...values: unknown[]): MetalContext {
  expectNothing("metalContext", values);
  if (!shared || shared.isClosed) shared = new MetalContext();
  return shared;
}
