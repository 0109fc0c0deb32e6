/** Encodes the built-in kernels: finds the pipeline, binds tensors and dispatches. */
import { getOrMake, lastElement } from "../../core/collections.ts";
import { BackendError } from "../../core/errors.ts";
import { bytesOf, type DType, isComplex, type RealDType } from "../../tensor/dtype.ts";
import { reachOf } from "../../tensor/reach.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Launched, TicketRange } from "../backend.ts";
import { enumerations, type Header } from "../enumeration.ts";
import { Access, dataTypes } from "./abi.ts";
import { type MetalContext, metalContext } from "./context.ts";
import { type BoundBuffer, encode, type Size, threadCount } from "./encode.ts";
import { headerTexts, kernelText, kernelVersions } from "./kernel_files.ts";
import { MetalMemory } from "./memory.ts";
import { createLibrary, finishPipeline, type Pipeline } from "./pipeline.ts";
import { structHeaders } from "./struct.ts";

/** The Metal Shading Language type of each dtype. bool is a byte; GPUs have no float64. */
export const metalType: Readonly<Record<Exclude<RealDType, "float64">, string>> = {
  float32: "float",
  float16: "half",
  bfloat16: "bfloat",
  int64: "long",
  int32: "int",
  uint32: "uint",
  int8: "char",
  uint8: "uchar",
  bool: "bool",
};

/** Returns the name of a dtype in kernels' host names. */
export function metalTypeOf(dtype: DType): string {
  if (isComplex(dtype)) throw new BackendError("metal", "unsupported", "kernels have no complex numbers");
  if (dtype === "float64") throw new BackendError("metal", "unsupported", "Metal has no float64");
  return metalType[dtype];
}

const unsignedOf: Readonly<Record<number, string>> = { 1: "uchar", 2: "ushort", 4: "uint", 8: "ulong" };

/** Returns the unsigned type of a dtype's size, for kernels that only move elements. */
export const metalBitsOf = (dtype: DType): string => unsignedOf[bytesOf(dtype)];

/** Returns why a call with float64 is unsupported: the `unsupported` of implementations with all other dtypes. */
export function noFloat64({ inputs }: { readonly inputs: readonly Tensor[] }): string | undefined {
  return inputs.some(({ dtype }) => dtype === "float64") ? "Metal has no float64" : undefined;
}

/** A built-in kernel. */
export interface KernelName {
  /** Path in `kernels/`, such as `"elementwise/unary.metal"`. */
  readonly file: string;
  /** Host name, such as `"unary_float"`. */
  readonly name: string;
  /** Values of the function constants 0, 1, 2, …, each a `uint`. */
  readonly constants?: readonly number[];
}

export interface Operand {
  readonly tensor: Tensor;
  readonly access: keyof typeof Access;
  /** The range of a dense tensor's elements to bind. Default: all. */
  readonly part?: { readonly first: number; readonly count: number };
}

export interface Launch extends KernelName {
  /** The operands in the order of the kernel's buffer indices, from 0. */
  readonly operands: readonly Operand[];
  /** The parameter struct, bound after the operands. */
  readonly parameters: Uint8Array;
  /** Exact number of threads. Alternatively, give `threadgroups`. */
  readonly grid?: Size;
  readonly threadgroups?: Size;
  readonly threadgroup: Size;
  /** Bytes of the threadgroup arguments 0, 1, …. */
  readonly threadgroupMemory?: readonly number[];
  /**
   *  Approximate additions and multiplications of all threads. Default: estimated from threads and the operands' bytes.
   */
  readonly work?: number;
}

export const reads = (tensor: Tensor): Operand => ({ tensor, access: "read" });
export const writes = (tensor: Tensor): Operand => ({ tensor, access: "write" });

/**
 * Returns the offset in elements of a tensor's element (0, …, 0) from the element at which {@link launch} binds the
 * tensor: 0 unless a stride is negative.
 */
export const startOf = (tensor: Tensor): number => tensor.offset - reachOf(tensor).first;

/**
 * Encodes one kernel without waiting. It runs in order with all other work.
 *
 * @returns its command buffer, for implementations to return; for several launches, see {@link spanOf}.
 */
export function launch(what: Launch): TicketRange {
  const context = metalContext();
  const pipeline = pipelineFor(context, what);
  checkThreads(what, pipeline);
  const { grid, threadgroups, threadgroup, operands, parameters, threadgroupMemory = [], work, name } = what;
  const ticket = encode(context, name, {
    pipeline: pipeline.handle,
    grid: grid ?? threadgroups ?? 1,
    gridKind: grid === undefined ? "threadgroups" : "threads",
    threadgroup,
    buffers: operands.map(bind),
    operands,
    kernel: what,
    inline: [{ index: operands.length, bytes: parameters }],
    threadgroupMemory: threadgroupMemory.map((length, index) => ({ index, length })),
    label: name,
    work,
  });
  return { first: ticket, last: ticket };
}

/**
 * Encodes a kernel on a batch, in several dispatches if one would exceed the work limit of a command buffer. The split
 * does not change the results. All operands must be dense, with batch axes first.
 *
 * @param work the work of the whole batch; see {@link Launch.work}
 */
export function launchBatch(batch: number, work: number, describe: (batch: number) => Launch): TicketRange {
  const { batchWork } = metalContext();
  if (work <= batchWork || batch === 1) return launch({ ...describe(batch), work });
  const most = Math.max(1, Math.floor((batchWork * batch) / work));
  const firsts = Array.from({ length: Math.ceil(batch / most) }, (_, index) => index * most);
  const [head, ...more] = firsts.map((first) => {
    const count = Math.min(most, batch - first);
    const described = describe(count);
    const operands = described.operands.map((operand) => partOf(operand, batch, first, count));
    return launch({ ...described, operands, work: (work * count) / batch });
  });
  return spanOf([head, ...more] as [TicketRange]);
}

function partOf({ tensor, access }: Operand, batch: number, first: number, count: number): Operand {
  const each = tensor.size / batch;
  return { tensor, access, part: { first: first * each, count: count * each } };
}

/** Returns the command buffers of several launches in order; null if nothing was launched. */
export function spanOf(launches: readonly [...Launched[], TicketRange]): TicketRange;
export function spanOf(launches: readonly Launched[]): TicketRange | null;
export function spanOf(launches: readonly Launched[]): TicketRange | null {
  const done = launches.filter((launched): launched is TicketRange => Boolean(launched));
  if (done.length === 0) return null;
  return {
    first: done[0].first,
    last: lastElement(done).last,
    checks: done.flatMap(({ checks = [] }) => checks),
  };
}

/** Checks the thread limit: if a pipeline supports fewer threads than its kernel needs, another backend must run. */
function checkThreads({ name, threadgroup }: Launch, { info: { maxTotalThreads } }: Pipeline): void {
  const threads = threadCount(threadgroup);
  if (threads <= maxTotalThreads) return;
  throw new BackendError(
    name,
    "limitExceeded",
    `expected a threadgroup of at most ${maxTotalThreads} threads, the limit of the pipeline, got ${threads}`,
  );
}

function bind({ tensor, access, part }: Operand, index: number): BoundBuffer {
  const { memory } = tensor.storage;
  if (!(memory instanceof MetalMemory)) throw new BackendError("metal", "internal", "an operand is not on the device");
  const reach = reachOf(tensor);
  const [first, count] = part ? [reach.first + part.first, part.count] : [reach.first, reach.count];
  const bytes = bytesOf(tensor.dtype);
  const offset = count === 0 ? 0 : first * bytes; // an empty view may start past the end
  return { buffer: memory.handle, offset, length: count * bytes, index, access: Access[access] };
}

// One library per file and one pipeline per kernel with constants, for the lifetime of the context.
const libraries = new WeakMap<MetalContext, Map<string, number>>();
const pipelines = new WeakMap<MetalContext, Map<string, Pipeline>>();

/** Returns the pipeline of a kernel, compiled at the first call. @throws {KernelCompileError} */
export function pipelineFor(context: MetalContext, kernel: KernelName): Pipeline {
  const known = getOrMake(pipelines, context, () => new Map<string, Pipeline>());
  let key = `${kernel.file} ${kernel.name}`;
  for (const value of kernel.constants ?? []) key += ` ${value}`; // join is slower
  return known.get(key) ?? getOrMake(known, key, () => compile(context, kernel));
}

const compile = (context: MetalContext, { file, name, constants = [] }: KernelName): Pipeline =>
  finishPipeline(context, name, libraryOf(context, file), name, constantValues(constants));

const constantValues = (constants: readonly number[]) =>
  constants.map((value, index) => ({
    name: "",
    index,
    type: dataTypes.uint,
    value: new Uint8Array(new Uint32Array([value]).buffer),
  }));

const generated = new WeakMap<MetalContext, Map<string, Pipeline>>();

/**
 * Returns the pipeline of a generated kernel. The first call with a text and constants compiles it.
 *
 * @param name the name of the kernel in the text
 * @param constants values of the function constants 0, 1, 2, …
 * @throws {KernelCompileError}
 */
export function pipelineOfText(
  context: MetalContext,
  name: string,
  text: string,
  constants: readonly number[] = [],
): Pipeline {
  const known = getOrMake(generated, context, () => new Map<string, Pipeline>());
  return getOrMake(known, `${constants.join(" ")} ${text}`, () => {
    const library = createLibrary(context, name, { source: text, headers: kernelHeaders(), fileName: `${name}.metal` });
    return finishPipeline(context, name, library, name, constantValues(constants));
  });
}

function libraryOf(context: MetalContext, file: string): number {
  const known = getOrMake(libraries, context, () => new Map<string, number>());
  return getOrMake(known, file, () => {
    const source = { source: kernelText(file), headers: kernelHeaders(), fileName: file };
    return createLibrary(context, file, { ...source, languageVersion: kernelVersions[file] });
  });
}

let headers: Record<string, string> | undefined;

/** Returns the headers of enumerations and structs, which are generated: `"generated/scan.h"`. */
export const generatedHeaders = (): Header[] => [...enumerations().map(({ header }) => header), ...structHeaders()];

/** Returns all headers that kernels may include, by name: those in `kernels/`, and generated ones. */
export function kernelHeaders(): Record<string, string> {
  headers ??= headerTexts();
  return { ...headers, ...Object.fromEntries(generatedHeaders().map(({ name, text }) => [name, text])) };
}
