import { ArgumentError, DisposedError, ShapeError } from "../../core/errors.ts";
import { anObject, choice, flag, text } from "../../core/kinds.ts";
import { named, operand, type Parsed, parameters, reading, required } from "../../core/parameters.ts";
import type { TicketRange } from "../backend.ts";
import type { GridKind } from "./abi.ts";
import { type BindingValue, type BoundArguments, bindArguments, type Outputs } from "./arguments.ts";
import { aContext, type MetalContext, metalContext } from "./context.ts";
import { encode, extents, type Size, threadCount } from "./encode.ts";
import { aSize } from "./kinds.ts";
import { createPipeline, type LibrarySource, type Pipeline, type PipelineInfo } from "./pipeline.ts";
import type { Counters, Finding } from "./report.ts";
import type { ScalarValue } from "./scalars.ts";

/** What {@link metalKernel} compiles: a source, the kernel's name in it, and its function constants. */
export interface MetalKernelOptions extends LibrarySource {
  /** The kernel's name in the source (its host name). */
  name: string;
  /** Function constants, by name. */
  constants?: Record<string, ScalarValue>;
  /** Default: {@link metalContext}. */
  context?: MetalContext;
}

/** The grid of a run of a {@link MetalKernel}, and what is to be observed. */
export interface RunOptions {
  /** Threads of the grid, exact: the last threadgroups may be smaller. Give this or `threadgroups`. */
  grid?: Size;
  /** Threadgroups of the grid. */
  threadgroups?: Size;
  /** Threads in a threadgroup. Default: up to 256 along the first dimension. */
  threadgroup?: Size;
  /** Bytes of `[[threadgroup(n)]]` arguments, by name; each a multiple of 16. */
  threadgroupMemory?: Record<string, number>;
  /** Count what the dispatch moves (the software device; slower). */
  counters?: boolean;
  /** A name for messages, captures and reports. Default: the kernel's. */
  label?: string;
}

/** What a run of a {@link MetalKernel} gives. */
export interface KernelResult<Bindings> {
  /** What the kernel wrote, by argument name: a new array for each typed array that the kernel may write. */
  outputs: Outputs<Bindings>;
  /** What the dispatch moved; null unless `counters` was set, and on Apple's device. */
  counters: Counters | null;
  /** What the checker found in this run, where it is on. */
  findings: Finding[];
}

/**
 * Compiles a kernel in Metal Shading Language and makes it callable. On macOS it runs on the GPU, on Linux on the
 * software device.
 *
 * @example
 * const saxpy = metalKernel({
 *   name: "saxpy",
 *   source: `#include <metal_stdlib>
 *     using namespace metal;
 *     kernel void saxpy(device const float* x, device float* y, constant float& a,
 *                       uint i [[thread_position_in_grid]]) {
 *       y[i] += a * x[i];
 *     }`,
 * });
 * const { outputs } = saxpy.run({ x: new Float32Array([1, 2]), y: new Float32Array([10, 20]), a: 3 }, { grid: 2 });
 * outputs.y; // Float32Array [13, 26]
 *
 * @throws {KernelCompileError} with the compiler's text, where the source does not compile, or has no such kernel or
 * constant.
 */
export function metalKernel(options: MetalKernelOptions): MetalKernel {
  return new MetalKernel(options);
}

const kernelParameters = parameters("metalKernel", {
  name: required(text),
  source: required(text),
  constants: named(anObject<Record<string, ScalarValue>>("an object of values by name")),
  headers: named(anObject<Record<string, string>>("an object of texts by name")),
  macros: named(anObject<Record<string, string | number | boolean>>("an object of values by name")),
  mathMode: named(choice("safe", "relaxed", "fast")),
  mathFunctions: named(choice("precise", "fast")),
  languageVersion: named(text),
  fileName: named(text),
  context: named(aContext),
});

const runOptions = {
  grid: named(aSize),
  threadgroups: named(aSize),
  threadgroup: named(aSize),
  threadgroupMemory: named(anObject<Record<string, number>>("an object of bytes by name"), {}),
  counters: named(flag, false),
  label: named(text),
} as const;
const runParameters = parameters("MetalKernel.run", {
  bindings: operand(anObject<Record<string, BindingValue>>("an object of values by the kernel's argument names")),
  ...runOptions,
});
type RunSettings = Parsed<typeof runOptions>;

/** A kernel that is ready to run; {@link metalKernel} makes one. */
export class MetalKernel implements Disposable {
  readonly context: MetalContext;
  readonly name: string;
  private readonly pipeline: Pipeline;
  private disposed = false;

  constructor(options: MetalKernelOptions) {
    const { name, constants, context, ...source } = kernelParameters([options]);
    this.context = context ?? metalContext();
    this.name = name;
    const operation = `metalKernel ${name}`;
    const create = () => createPipeline(this.context, operation, source as LibrarySource, name, constants);
    this.pipeline = reading(operation, create);
  }

  /** The kernel's arguments and limits. */
  get info(): PipelineInfo {
    return this.pipeline.info;
  }

  /**
   * Runs the kernel and waits for it, blocking. `bindings` gives each argument by name: a typed array (copied in; and
   * out into `outputs`, where the kernel may write it), an {@link output}, a {@link DeviceBuffer}, or a number for a
   * `constant T&`.
   *
   * @throws {ArgumentError} for a missing, unknown or unsuitable binding. @throws {ShapeError} for a grid or
   * threadgroup that does not fit.
   * @throws {BackendError} where the device failed.
   */
  run<const Bindings extends Record<string, BindingValue>>(
    bindings: Bindings,
    options: RunOptions,
  ): KernelResult<Bindings> {
    const call = this.begin(bindings, options);
    try {
      this.context.wait(call.ticket);
      return this.collect(call);
    } finally {
      this.end(call);
    }
  }

  /** As {@link run}, without blocking the event loop. */
  async runAsync<const Bindings extends Record<string, BindingValue>>(
    bindings: Bindings,
    options: RunOptions,
  ): Promise<KernelResult<Bindings>> {
    const call = this.begin(bindings, options);
    try {
      await this.context.finished(call.ticket);
      return this.collect(call);
    } finally {
      this.end(call);
    }
  }

  /**
   * Encodes the kernel and returns at once: its results are in the device buffers that it was given. Typed arrays may
   * be bound to arguments that it only reads.
   *
   * @returns the command buffer that holds it
   */
  encode(bindings: Record<string, BindingValue>, options: RunOptions): TicketRange {
    const { bindings: given, ...settings } = runParameters([bindings, options]);
    const bound = this.bind(given, settings);
    const outputs = bound.outputNames();
    if (outputs.length > 0) {
      bound.dispose();
      throw new ArgumentError(
        this.operation,
        "invalidArgument",
        `encode() can't return ${outputs.join(", ")}: bind a DeviceBuffer, or call run()`,
      );
    }
    const call = this.launch(bound, settings);
    this.end(call);
    return { first: call.ticket, last: call.ticket };
  }

  private begin<Bindings>(bindings: Bindings, options: RunOptions): Call<Bindings> {
    const { bindings: given, ...settings } = runParameters([bindings, options]);
    return this.launch(this.bind(given, settings) as unknown as BoundArguments<Bindings>, settings);
  }

  private bind<Bindings extends Record<string, BindingValue>>(bindings: Bindings, options: RunSettings) {
    if (this.disposed) throw new DisposedError(this.operation, "disposed", "it was used after dispose()");
    return bindArguments(this.context, this.operation, this.info, bindings, options.threadgroupMemory);
  }

  private launch<Bindings>(bound: BoundArguments<Bindings>, options: RunSettings): Call<Bindings> {
    try {
      if (options.counters) this.count(1);
      const label = options.counters ? `${options.label ?? this.name} #${++runs}` : (options.label ?? this.name);
      const ticket = this.dispatch(bound, options, label);
      return { bound, ticket, label, counted: options.counters === true };
    } catch (error) {
      if (options.counters) this.count(-1);
      bound.dispose();
      throw error;
    }
  }

  /** Counting is a setting of the device: it stays on as long as a counted run is under way. */
  private count(change: 1 | -1): void {
    countedRuns += change;
    if (this.context.isSoftware && !this.context.isClosed) this.context.configure("count", countedRuns > 0);
  }

  private end({ bound, counted }: Call<unknown>): void {
    if (counted) this.count(-1);
    bound.dispose();
  }

  private dispatch(bound: BoundArguments<unknown>, options: RunSettings, label: string): number {
    const { grid, kind } = this.grid(options);
    return encode(this.context, this.operation, {
      pipeline: this.pipeline.handle,
      grid: grid,
      gridKind: kind,
      threadgroup: this.threadgroup(options.threadgroup, kind === "threads" ? grid : undefined),
      buffers: bound.buffers,
      inline: bound.inline,
      threadgroupMemory: bound.threadgroupMemory,
      label,
    });
  }

  private grid({ grid, threadgroups }: RunSettings): { grid: Extents; kind: keyof typeof GridKind } {
    if ((grid === undefined) === (threadgroups === undefined)) {
      throw new ShapeError(this.operation, "invalidArgument", "give either grid (threads) or threadgroups");
    }
    if (grid !== undefined) return { grid: this.size("grid", grid), kind: "threads" };
    return { grid: this.size("threadgroups", threadgroups as Size), kind: "threadgroups" };
  }

  private threadgroup(given: Size | undefined, grid: Extents | undefined): Extents {
    if (given === undefined) return [Math.min(256, this.info.maxTotalThreads, grid?.[0] ?? 256), 1, 1];
    const size = this.size("threadgroup", given);
    const threads = threadCount(size);
    const most = this.info.maxTotalThreads;
    if (threads > most) {
      throw new ShapeError(
        this.operation,
        "limitExceeded",
        `expected a threadgroup of at most ${most} threads, got ${size.join("×")} = ${threads}`,
      );
    }
    return size;
  }

  private size(what: string, size: Size): Extents {
    const given = extents(size);
    if (given.every((extent) => Number.isInteger(extent) && extent >= 1 && extent < 2 ** 32)) return given as Extents;
    throw new ShapeError(
      this.operation,
      "invalidArgument",
      `expected ${what} to be integers of at least 1, got [${given.join(", ")}]`,
    );
  }

  private collect<Bindings>({ bound, label, counted }: Call<Bindings>): KernelResult<Bindings> {
    const report = counted || this.context.isChecked ? this.context.freshReport() : undefined;
    const counters = counted
      ? (report?.dispatches.find((dispatch) => dispatch.label?.endsWith(label))?.counters ?? null)
      : null;
    const findings = report?.findings.filter((finding) => finding.kernel === this.name) ?? [];
    return { outputs: bound.readOutputs(), counters, findings };
  }

  private get operation(): string {
    return `metalKernel ${this.name}`;
  }

  /** Gives the pipeline back. A second call has no effect. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    if (!this.context.isClosed) this.context.native.orchard_release(this.pipeline.handle);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

type Extents = [number, number, number];

interface Call<Bindings> {
  readonly bound: BoundArguments<Bindings>;
  readonly ticket: number;
  readonly label: string;
  readonly counted: boolean;
}

let runs = 0; // makes the label of a counted run unique
let countedRuns = 0; // under way
