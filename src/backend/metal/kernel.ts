import { ArgumentError, DisposedError, ShapeError } from "../../core/errors.ts";
import { aFunction, anObject, choice, either, flag, text } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters, reading, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { TicketRange } from "../backend.ts";
import { latestLevelOf } from "../batching/examples.ts";
import type { GridKind } from "./abi.ts";
import { type BindingValue, type BoundArguments, bindArguments, type Outputs } from "./arguments.ts";
import { aContext, type MetalContext, metalContext, type ReportMark } from "./context.ts";
import { encode, extents, type Size, threadCount } from "./encode.ts";
import { applyKernel, type KernelGrid, type KernelHost, kernelPrimitive } from "./kernel_apply.ts";
import { type GradientsOf, recordKernel } from "./kernel_gradient.ts";
import {
  type Declared,
  declaredOf,
  type GridShape,
  type KernelBackward,
  type KernelTensors,
  type KernelValues,
  type ResultShape,
  splitValues,
  type TensorSettings,
  tensorOptions,
} from "./kernel_options.ts";
import { applyVmapRule, type KernelRules, type VmapRule } from "./kernel_rules.ts";
import { aSize } from "./kinds.ts";
import { createPipeline, type LibrarySource, type Pipeline, type PipelineInfo } from "./pipeline.ts";
import { type Counters, type Finding, isAboutSource } from "./report.ts";
import type { ScalarValue } from "./scalars.ts";

/**
 * Options of {@link metalKernel}: the source, the kernel's name and its function constants; and for tensors ({@link
 * MetalKernel.apply}) the results, their gradients, and a fallback without Metal.
 */
export interface MetalKernelOptions<Values extends KernelValues = KernelValues, Results extends string = never>
  extends LibrarySource,
    KernelRules<Values, NoInfer<Results>> {
  /** The kernel's name in the source (its host name). */
  name: string;
  /** Function constants by name. */
  constants?: Record<string, ScalarValue>;
  /** The context. Default: {@link metalContext}. */
  context?: MetalContext;
  /** The shape of each result, by the name of the argument that the kernel writes. */
  shapes?: { readonly [Name in Results]: ResultShape<Values> };
  /** The dtypes of results. Default: the dtype of the call's tensors. */
  dtypes?: { readonly [Name in NoInfer<Results>]?: DType };
  /** Arguments for which the kernel supports any strides (true: all). Others are made contiguous first. */
  strided?: boolean | readonly (keyof NoInfer<Values> & string)[];
  /** Threads of `apply`'s grid. Default: one per element of the first result. */
  grid?: GridShape<Values, NoInfer<Results>>;
  /** Threadgroups of `apply`'s grid, instead of `grid`. */
  threadgroups?: GridShape<Values, NoInfer<Results>>;
  /** Threads in a threadgroup of `apply`. Default: up to 256 along the first dimension. */
  threadgroup?: Size;
  /** Bytes of `[[threadgroup(n)]]` arguments in `apply`. */
  threadgroupMemory?: Record<string, number>;
  /**
   * The gradient: a function or another kernel. The function gets the results' gradients, the arguments and the
   * results, each by name, and returns gradients of tensors by name. For higher-order gradients, compute them with
   * differentiable operations. A kernel gets the gradient of a result `z` in the argument `grad_z`, and arguments and
   * results under their names; it writes the gradient of `x` to `grad_x`.
   */
  backward?: BackwardOption<Values, NoInfer<Results>>;
  /** Names of the arguments and results that the gradient needs. Default: all. */
  saves?: readonly string[];
  /**
   * Computes the results on the backends cpu and reference. With a fallback, the kernel is compiled when it first runs
   * on metal; without one, it always runs on metal, regardless of the preferred backend.
   */
  fallback?: (values: Values) => Tensor | KernelTensors<NoInfer<Results>>;
}

type BackwardOption<Values, Results extends string> =
  | KernelBackward<Values, Results>
  | MetalKernel<KernelValues, string>;

/** The grid of a call of {@link MetalKernel.apply}, if it differs from the kernel's. */
export type ApplyOptions = Omit<RunOptions, "counters">;

/** The grid of a run of a {@link MetalKernel}, and its observation. */
export interface RunOptions {
  /** Exact number of threads of the grid; the last threadgroups may be smaller. Give this or `threadgroups`. */
  grid?: Size;
  /** Threadgroups of the grid. */
  threadgroups?: Size;
  /** Threads in a threadgroup. Default: up to 256 along the first dimension. */
  threadgroup?: Size;
  /** Bytes of `[[threadgroup(n)]]` arguments, by name; each a multiple of 16. */
  threadgroupMemory?: Record<string, number>;
  /** Count the bytes and operations of the dispatch (software device only; slower). */
  counters?: boolean;
  /** A name for messages, captures and reports. Default: the kernel's. */
  label?: string;
}

/** The result of a run of a {@link MetalKernel}. */
export interface KernelResult<Bindings> {
  /** The outputs by argument name: a new array for each typed array that the kernel may write. */
  outputs: Outputs<Bindings>;
  /** The counters of the dispatch; null unless `counters` was set, and on Apple's devices. */
  counters: Counters | null;
  /** The checker's findings in this run, if it is on. */
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
 * @throws {KernelCompileError} with the compiler's output, if the source does not compile or has no such kernel or
 * constant.
 */
export function metalKernel<Values extends KernelValues = KernelValues, const Results extends string = never>(
  options: MetalKernelOptions<Values, Results>,
): MetalKernel<Values, Results> {
  return new MetalKernel(options);
}

const aKernel: Kind<MetalKernel<KernelValues, string>> = {
  expected: "a MetalKernel",
  parse: (value) => (value instanceof MetalKernel ? value : undefined),
};

const kernelParameters = parameters("metalKernel", {
  name: required(text),
  source: required(text),
  constants: named(anObject<Record<string, ScalarValue>>("an object of values by name")),
  headers: named(anObject<Record<string, string>>("an object of strings by name")),
  macros: named(anObject<Record<string, string | number | boolean>>("an object of values by name")),
  mathMode: named(choice("safe", "relaxed", "fast")),
  mathFunctions: named(choice("precise", "fast")),
  languageVersion: named(text),
  fileName: named(text),
  context: named(aContext),
  ...tensorOptions,
  backward: named(either(aKernel, aFunction<GradientsOf>())),
  jvp: named(aFunction<GradientsOf>()),
  vmap: named(aFunction<VmapRule>()),
});

const runOptions = {
  grid: named(aSize),
  threadgroups: named(aSize),
  threadgroup: named(aSize),
  threadgroupMemory: named(anObject<Record<string, number>>("an object of byte counts by name"), {}),
  counters: named(flag, false),
  label: named(text),
} as const;
const runParameters = parameters("MetalKernel.run", {
  bindings: operand(anObject<Record<string, BindingValue>>("an object of values by argument name")),
  ...runOptions,
});
interface RunSettings extends KernelGrid {
  readonly counters?: boolean;
}
const { counters: _, ...applyOptions } = runOptions;
const applyParameters = parameters("MetalKernel.apply", {
  values: operand(anObject<KernelValues>("an object of values by argument name")),
  ...applyOptions,
});

/**
 * A compiled kernel, created by {@link metalKernel}: {@link MetalKernel.run} accepts typed arrays,
 * {@link MetalKernel.apply} tensors.
 *
 * @example
 * const { outputs } = saxpy.run({ x: new Float32Array([1, 2]), y: new Float32Array([10, 20]), a: 3 }, { grid: 2 });
 */
export class MetalKernel<Values extends KernelValues = KernelValues, Results extends string = never>
  implements Disposable
{
  readonly name: string;
  private readonly declared: Declared;
  private readonly backward: MetalKernel<KernelValues, string> | GradientsOf | undefined;
  private readonly jvp: GradientsOf | undefined;
  private readonly vmap: VmapRule | undefined;
  private readonly host: KernelHost;
  private readonly primitive: ReturnType<typeof kernelPrimitive>;
  private readonly compile: () => Compiled;
  private ready: Compiled | undefined;
  private disposed = false;

  constructor(options: MetalKernelOptions<Values, Results>);
  constructor(...values: unknown[]) {
    const { name, constants, context, backward, jvp, vmap, ...more } = kernelParameters(values);
    this.name = name;
    const { operation } = this;
    this.declared = reading(operation, () => declaredOf(operation, more as TensorSettings));
    this.backward = backward;
    this.jvp = jvp;
    this.vmap = vmap;
    this.host = this.asHost();
    this.primitive = kernelPrimitive(this.host);
    const copied = { headers: copyOf(operation, more.headers), macros: copyOf(operation, more.macros) };
    const source = { ...more, ...copied } as LibrarySource;
    const constantValues = copyOf(operation, constants);
    this.compile = () => {
      const chosen = context ?? metalContext();
      const mark = chosen.isChecked ? chosen.reportMark() : undefined;
      const pipeline = createPipeline(chosen, operation, source, name, constantValues);
      const findings = mark ? chosen.reportSince(mark).findings.filter(isAboutSource) : [];
      return { context: chosen, pipeline, findings };
    };
    if (!this.declared.fallback) this.compiled();
  }

  /** The context that the kernel was compiled for. */
  get context(): MetalContext {
    return this.compiled().context;
  }

  /** The kernel's arguments and limits. */
  get info(): PipelineInfo {
    return this.compiled().pipeline.info;
  }

  private compiled() {
    if (this.ready === undefined) {
      this.checkAlive();
      this.ready = reading(this.operation, this.compile);
    }
    return this.ready;
  }

  private checkAlive(): void {
    if (this.disposed) throw new DisposedError(this.operation, "disposed", "it was used after dispose()");
  }

  /**
   * Computes tensors from tensors. `values` has each argument by name; the results are returned by name. The call is an
   * operation like the built-in ones: on metal it is only encoded, and it supports gradients, strict mode and
   * `codepaths()`. Its arguments may be on any device, with any strides, and are never changed. If `values` has a
   * tensor under a result's name, the result starts as a copy of it; otherwise it starts as zeros if the kernel reads
   * it.
   *
   * A kernel may also have arguments `x_shape`, `x_strides`, `x_ndim`, `x_size` and `x_offset` (`int`, `uint`, `long`
   * or `ulong`), which describe the layout of a tensor `x`, in elements.
   *
   * @throws {ArgumentError} for a missing, unknown or unsuitable argument. @throws {DTypeError} if an element type
   * differs from the kernel's. @throws {ShapeError} for an invalid shape of a result or an invalid grid.
   * @throws {BackendError} if no backend can run it.
   */
  apply(values: Values, options?: ApplyOptions): { readonly [Name in Results]: Tensor };
  apply(...given: unknown[]): Readonly<Record<string, Tensor>> {
    const { values, ...grid } = applyParameters(given);
    this.checkAlive();
    const read = reading(this.operation, () => ({ ...values }));
    const level = this.vmap && latestLevelOf([...splitValues(read).tensors.values()]);
    if (level) return applyVmapRule(this.host, this.vmap, read, level);
    const applied = applyKernel(this.host, this.primitive, read, grid);
    recordKernel(this.host, { backward: this.gradients(), jvp: this.jvp }, applied);
    return Object.fromEntries(applied.results);
  }

  /** Returns the backward as a function. A kernel gets the values it has arguments for, and gradients as `grad_…`. */
  private gradients(): GradientsOf | undefined {
    const { backward } = this;
    if (!(backward instanceof MetalKernel)) return backward;
    return (gradients, values, results) => {
      const incoming = Object.entries(gradients).map(([name, gradient]) => [`grad_${name}`, gradient]);
      const all = { ...results, ...values, ...Object.fromEntries(incoming) } as KernelValues;
      const given = Object.entries(backward.apply(backward.known(all)));
      return Object.fromEntries(given.map(([name, gradient]) => [name.replace(/^grad_/, ""), gradient]));
    };
  }

  /** Returns the values that the kernel has arguments for; all values if only its fallback has run so far. */
  private known(values: KernelValues): KernelValues {
    if (this.declared.fallback && !this.ready) return values;
    const names = new Set(this.info.bindings.map(({ name }) => name));
    return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)));
  }

  private asHost(): KernelHost {
    return {
      operation: this.operation,
      declared: this.declared,
      compiled: () => ({ context: this.context, info: this.info }),
      dispatch: (bound, grid) => this.dispatch(bound, grid, grid.label ?? this.name),
    };
  }

  /**
   * Runs the kernel and blocks until it is done. `bindings` has each argument by name: a typed array (copied to the
   * device, and to `outputs` if the kernel may write it), an {@link output}, a {@link DeviceBuffer}, or a number for a
   * `constant T&`.
   *
   * @throws {ArgumentError} for a missing, unknown or unsuitable binding. @throws {ShapeError} for a grid or
   * threadgroup that does not fit.
   * @throws {BackendError} if the device fails.
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

  /** As {@link run}, but without blocking the event loop. */
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
   * Encodes the kernel and returns immediately. The results are written to the given device buffers. Typed arrays may
   * be bound only to arguments that the kernel does not write.
   *
   * @returns its command buffer
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
    return this.launch(this.bind(given, settings) as BoundArguments<Bindings>, settings);
  }

  private bind<Bindings extends Record<string, BindingValue>>(bindings: Bindings, options: RunSettings) {
    this.checkAlive();
    return bindArguments(this.context, this.operation, this.info, bindings, options.threadgroupMemory);
  }

  private launch<Bindings>(bound: BoundArguments<Bindings>, options: RunSettings): Call<Bindings> {
    try {
      if (options.counters) this.count(1);
      const mark = options.counters || this.context.isChecked ? this.context.reportMark() : undefined;
      const label = options.counters ? `${options.label ?? this.name} #${++runs}` : (options.label ?? this.name);
      const ticket = this.dispatch(bound, options, label);
      return { bound, ticket, label, counted: options.counters === true, mark };
    } catch (error) {
      if (options.counters) this.count(-1);
      bound.dispose();
      throw error;
    }
  }

  /** Counting is a setting of the device; it stays on while a counted run is in progress. */
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
      pipeline: this.compiled().pipeline.handle,
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
    if (given.every((extent) => Number.isInteger(extent) && extent >= 1 && extent < 2 ** 32)) return given;
    throw new ShapeError(
      this.operation,
      "invalidArgument",
      `expected ${what} to be integers of at least 1, got [${given.join(", ")}]`,
    );
  }

  private collect<Bindings>({ bound, label, counted, mark }: Call<Bindings>): KernelResult<Bindings> {
    const report = mark ? this.context.reportSince(mark) : undefined;
    const counters = counted
      ? (report?.dispatches.find((dispatch) => dispatch.label?.endsWith(label))?.counters ?? null)
      : null;
    const found = report?.findings ?? [];
    const ready = this.compiled();
    // kernels compiled without the checker get these findings only now
    ready.findings.push(...found.filter(isAboutSource));
    const ofSource = this.context.isChecked ? ready.findings : [];
    const findings = [...ofSource, ...found.filter(({ kernel }) => kernel === this.name)];
    return { outputs: bound.readOutputs(), counters, findings };
  }

  private get operation(): string {
    return `metalKernel ${this.name}`;
  }

  /** Releases the pipeline. A second call has no effect. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    const { context, pipeline } = this.ready ?? {};
    if (context && pipeline && !context.isClosed) context.native.orchard_release(pipeline.handle);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Copies an object, since the caller may change it later. */
const copyOf = <T extends object>(operation: string, given: T | undefined): T | undefined =>
  given && reading(operation, () => ({ ...given }));

type Extents = [number, number, number];

interface Compiled {
  readonly context: MetalContext;
  readonly pipeline: Pipeline;
  /** Findings about the source; see {@link isAboutSource}. */
  readonly findings: Finding[];
}

interface Call<Bindings> {
  readonly bound: BoundArguments<Bindings>;
  readonly ticket: number;
  readonly label: string;
  readonly counted: boolean;
  /** The position in the report before the run, to exclude findings of earlier runs. */
  readonly mark: ReportMark | undefined;
}

let runs = 0; // makes the label of a counted run unique
let countedRuns = 0; // counted runs in progress
