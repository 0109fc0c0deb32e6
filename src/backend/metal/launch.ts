/** Encodes the package's own kernels: finds the pipeline, binds tensors, dispatches. */
import { getOrMake } from "../../core/collections.ts";
import { BackendError } from "../../core/errors.ts";
import { bytesOf, type DType } from "../../tensor/dtype.ts";
import { reachOf } from "../../tensor/reach.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Launched, TicketRange } from "../backend.ts";
import { enumerations } from "../enumeration.ts";
import { Access, dataTypes } from "./abi.ts";
import type { Fields } from "./block.ts";
import { type MetalContext, metalContext } from "./context.ts";
import { encode, type Size, threadCount } from "./encode.ts";
import { headerTexts, kernelText } from "./kernel_files.ts";
import { MetalMemory } from "./memory.ts";
import { createLibrary, finishPipeline, type Pipeline } from "./pipeline.ts";

/** Metal Shading Language's name of a dtype; bool is a byte, and float64 is nothing that a GPU has. */
export const metalType: Readonly<Record<Exclude<DType, "float64">, string>> = {
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

/** The name of a dtype in kernels' host names. */
export function metalTypeOf(dtype: DType): string {
  if (dtype === "float64") throw new BackendError("metal", "unsupported", "Metal has no float64");
  return metalType[dtype];
}

const unsignedOf: Readonly<Record<number, string>> = { 1: "uchar", 2: "ushort", 4: "uint", 8: "ulong" };

/** The unsigned type of a dtype's size, in the host names of kernels that only move elements. */
export const metalBitsOf = (dtype: DType): string => unsignedOf[bytesOf(dtype)]!;

/** `unsupported` of implementations that run any dtype but float64. */
export function noFloat64({ inputs }: { readonly inputs: readonly Tensor[] }): string | undefined {
  return inputs.some(({ dtype }) => dtype === "float64") ? "Metal has no float64" : undefined;
}

/** A kernel of this package. */
export interface KernelName {
  /** Under `kernels/`, such as `"elementwise/unary.metal"`. */
  readonly file: string;
  /** Its host name, such as `"unary_float"`. */
  readonly name: string;
  /** Values of the function constants 0, 1, 2, …, each a `uint`. */
  readonly constants?: readonly number[];
}

export interface Operand {
  readonly tensor: Tensor;
  readonly access: keyof typeof Access;
  /** The elements that are bound, of a tensor without gaps; default: all. */
  readonly part?: { readonly first: number; readonly count: number };
}

export interface Launch extends KernelName {
  /** In the order of the kernel's buffer indices, from 0. */
  readonly operands: readonly Operand[];
  /** The parameter struct, bound after the operands. */
  readonly parameters: Uint8Array;
  /** Threads, exact; or threadgroups where `threadgroups` is given instead. */
  readonly grid?: Size;
  readonly threadgroups?: Size;
  readonly threadgroup: Size;
  /** Bytes of the threadgroup arguments 0, 1, …. */
  readonly threadgroupMemory?: readonly number[];
  /** Additions and multiplications of all threads, roughly; default: from the threads and the operands' bytes. */
  readonly work?: number;
}

export const reads = (tensor: Tensor): Operand => ({ tensor, access: "read" });
export const writes = (tensor: Tensor): Operand => ({ tensor, access: "write" });

/**
 * The offset of a tensor's element (0, …, 0) from where {@link launch} binds it, in elements: 0 unless a stride is
 * negative.
 */
export const startOf = (tensor: Tensor): number => tensor.offset - reachOf(tensor).first;

/**
 * Encodes one kernel. It runs in order with everything else; nothing waits.
 *
 * @returns the command buffer that holds it, which an implementation returns; of several launches, {@link spanOf}.
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
    inline: [{ index: operands.length, bytes: parameters }],
    threadgroupMemory: threadgroupMemory.map((length, index) => ({ index, length })),
    label: name,
    work,
  });
  return { first: ticket, last: ticket };
}

/**
 * Encodes a kernel that takes a batch: in several dispatches where the work of one would be more than a command buffer
 * may have. Each element of the batch is computed as in one dispatch. All operands are without gaps, batch axes first.
 *
 * @param work of the whole batch, as {@link Launch.work}
 */
export function launchBatch(batch: number, work: number, describe: (batch: number) => Launch): TicketRange {
  const { batchWork } = metalContext();
  if (work <= batchWork || batch === 1) return launch({ ...describe(batch), work });
  const most = Math.max(1, Math.floor((batchWork * batch) / work));
  const firsts = Array.from({ length: Math.ceil(batch / most) }, (_, index) => index * most);
  const [head, ...more] = firsts.map((first) => {
    const count = Math.min(most, batch - first);
    const own = describe(count);
    const operands = own.operands.map((operand) => partOf(operand, batch, first, count));
    return launch({ ...own, operands, work: (work * count) / batch });
  });
  return spanOf([head, ...more] as [TicketRange]);
}

function partOf({ tensor, access }: Operand, batch: number, first: number, count: number): Operand {
  const each = tensor.size / batch;
  return { tensor, access, part: { first: first * each, count: count * each } };
}

/** The command buffers of several launches, in their order; null where nothing was launched. */
export function spanOf(launches: readonly [...Launched[], TicketRange]): TicketRange;
export function spanOf(launches: readonly Launched[]): TicketRange | null;
export function spanOf(launches: readonly Launched[]): TicketRange | null {
  const done = launches.filter((launched): launched is TicketRange => Boolean(launched));
  if (done.length === 0) return null;
  return {
    ...{ first: done[0]!.first, last: done.at(-1)!.last },
    ...{ checks: done.flatMap(({ checks = [] }) => checks) },
  };
}

/** A pipeline may have room for fewer threads than its kernel is made for: then another backend has to do. */
function checkThreads({ name, threadgroup }: Launch, { info: { maxTotalThreads } }: Pipeline): void {
  const threads = threadCount(threadgroup);
  if (threads <= maxTotalThreads) return;
  throw new BackendError(
    name,
    "limitExceeded",
    `expected room for a threadgroup of ${threads} threads, got a pipeline for at most ${maxTotalThreads}`,
  );
}

function bind({ tensor, access, part }: Operand, index: number): Fields {
  const { memory } = tensor.storage;
  if (!(memory instanceof MetalMemory)) throw new BackendError("metal", "internal", "an operand is not on the device");
  const reach = reachOf(tensor);
  const [first, count] = part ? [reach.first + part.first, part.count] : [reach.first, reach.count];
  const bytes = bytesOf(tensor.dtype);
  const offset = count === 0 ? 0 : first * bytes; // a view of nothing may begin behind the end
  return { buffer: memory.handle, offset, length: count * bytes, index, access: Access[access] };
}

// One library a file and one pipeline a kernel with its constants, as long as the context lives.
const libraries = new WeakMap<MetalContext, Map<string, number>>();
const pipelines = new WeakMap<MetalContext, Map<string, Pipeline>>();

/** The pipeline of a kernel, compiled at the first call. @throws {KernelCompileError} */
export function pipelineFor(context: MetalContext, kernel: KernelName): Pipeline {
  const known = getOrMake(pipelines, context, () => new Map<string, Pipeline>());
  const key = `${kernel.file} ${kernel.name} ${kernel.constants?.join(" ") ?? ""}`;
  return getOrMake(known, key, () => compile(context, kernel));
}

function compile(context: MetalContext, { file, name, constants = [] }: KernelName): Pipeline {
  const values = constants.map((value, index) => ({
    name: "",
    index,
    type: dataTypes.uint,
    value: new Uint8Array(new Uint32Array([value]).buffer),
  }));
  return finishPipeline(context, name, libraryOf(context, file), name, values);
}

function libraryOf(context: MetalContext, file: string): number {
  const known = getOrMake(libraries, context, () => new Map<string, number>());
  return getOrMake(known, file, () => {
    return createLibrary(context, file, { source: kernelText(file), headers: kernelHeaders(), fileName: file });
  });
}

let headers: Record<string, string> | undefined;

/**
 * Every header that kernels may include, by name: those under `kernels/` (`"common/math.h"`), and one for each
 * enumeration (`"generated/scan.h"`).
 */
export function kernelHeaders(): Record<string, string> {
  headers ??= headerTexts();
  return { ...headers, ...Object.fromEntries(enumerations().map(({ header: { name, text } }) => [name, text])) };
}
