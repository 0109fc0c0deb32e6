/** Kernels on tensors. A call is an operation that dispatch runs like any other. */

import { noGrad } from "../../autograd/modes.ts";
import { lastElement } from "../../core/collections.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, BackendError, DTypeError, KernelCompileError, ShapeError } from "../../core/errors.ts";
import { reading } from "../../core/parameters.ts";
import { sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { Implementation, OperationCall, Primitive, TicketRange } from "../backend.ts";
import { executeMany } from "../dispatch.ts";
import type { BackendName } from "../names.ts";
import { copyBetween } from "../overrides.ts";
import { withBackend } from "../policy.ts";
import { type BindingValue, type BoundArguments, bindArguments, StridedTensor } from "./arguments.ts";
import type { NumericArray } from "./buffer.ts";
import { type MetalContext, metalContext } from "./context.ts";
import type { Size } from "./encode.ts";
import { copyOnDevice, denseCopy, layoutArguments, readsOffset, zeroOnDevice } from "./kernel_operands.ts";
import { type Declared, type ResultSpec, resultSpecs, type Sizes, splitValues } from "./kernel_options.ts";
import { aNumericArray } from "./kinds.ts";
import { noFloat64, spanOf, startOf } from "./launch.ts";
import type { PipelineBinding, PipelineInfo } from "./pipeline.ts";
import type { ScalarValue } from "./scalars.ts";

/** The grid of one call. Omitted fields are as declared. */
export interface KernelGrid {
  readonly grid?: Size | undefined;
  readonly threadgroups?: Size | undefined;
  readonly threadgroup?: Size | undefined;
  readonly threadgroupMemory: Readonly<Record<string, number>>;
  readonly label?: string | undefined;
}

/** The parts of a kernel that a call uses. */
export interface KernelHost {
  /** The operation's name, such as `"metalKernel saxpy"`. */
  readonly operation: string;
  readonly declared: Declared;
  /** Compiles at the first call. @throws {KernelCompileError} */
  compiled(): { readonly context: MetalContext; readonly info: PipelineInfo };
  /** Encodes a dispatch and returns its ticket. */
  dispatch(bound: BoundArguments<unknown>, grid: KernelGrid): number;
}

/** The attributes of a call. */
interface KernelCall {
  /** The names of the operands, in order. */
  readonly names: readonly string[];
  readonly others: Readonly<Record<string, NumericArray | ScalarValue>>;
  readonly results: readonly ResultSpec[];
  readonly grid: KernelGrid;
}

/** The checked arguments and the results of `apply`. */
export interface Applied {
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly others: Readonly<Record<string, NumericArray | ScalarValue>>;
  readonly results: ReadonlyMap<string, Tensor>;
}

/** Returns the primitive of a kernel. */
export function kernelPrimitive(host: KernelHost): Primitive<KernelCall> {
  const { operation } = host;
  const fallback = (name: BackendName) =>
    host.declared.fallback ? { run: (call: OperationCall<KernelCall>) => runFallback(host, name, call) } : undefined;
  const missing = { missing: "the kernel has no fallback" };
  return {
    name: operation,
    family: "kernel",
    implementations: {
      metal: { unsupported: whyNotOnMetal, run: (call) => runOnMetal(host, call) },
      cpu: fallback("cpu") ?? missing,
      reference: fallback("reference") ?? missing,
    },
  };
}

const whyNotOnMetal: NonNullable<Implementation<KernelCall>["unsupported"]> = ({ inputs, attributes }) =>
  attributes.results.some(({ dtype }) => dtype === "float64") ? "Metal has no float64" : noFloat64({ inputs });

/** Runs a kernel or its fallback. A kernel without a fallback always runs on metal. */
export function applyKernel(
  { operation, declared }: KernelHost,
  primitive: Primitive<KernelCall>,
  values: Readonly<Record<string, unknown>>,
  grid: KernelGrid,
): Applied {
  if (declared.shapes.size === 0)
    throw new ArgumentError(operation, "noResults", "expected shapes in metalKernel(): they name and size the results");
  const { tensors, others: given } = splitValues(values);
  const others = Object.fromEntries(
    Object.entries(given).map(([name, setting]) => [name, constant(operation, name, setting)]),
  );
  const specs = resultSpecs(operation, declared, tensors);
  const call = { names: [...tensors.keys()], others, results: specs, grid };
  const run = () => executeMany(primitive, [...tensors.values()], specs, call, operation);
  const outputs = declared.fallback ? run() : withBackend("metal", run);
  return { tensors, others, results: new Map(specs.map(({ name }, index) => [name, outputs[index]])) };
}

/** Reads a value that is not a tensor. Arrays are copied, since the call may be recomputed later. */
function constant(operation: string, name: string, value: unknown): NumericArray | ScalarValue {
  const copy = reading(operation, () => copyOf(operation, name, value));
  if (copy !== undefined) return copy;
  const expected = "expected a tensor, a number, a bigint, a boolean, a list of up to 4 of them or a typed array";
  const message = `argument ${name}: ${expected}, got ${describeValue(value)}; run() accepts device buffers`;
  throw new ArgumentError(operation, "invalidArgument", message);
}

function copyOf(operation: string, name: string, value: unknown): NumericArray | ScalarValue | undefined {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return value;
  if (Array.isArray(value)) return value.length <= MOST_LANES ? [...value] : undefined;
  return aNumericArray.parse(value, operation, name)?.slice();
}
const MOST_LANES = 4;

function runOnMetal(host: KernelHost, call: OperationCall<KernelCall>): TicketRange {
  const { context, info } = compiledFor(host);
  const { names, others, results: specs } = call.attributes;
  const results = new Map(specs.map(({ name }, index) => [name, call.outputs[index]]));
  checkWrites(host.operation, info, results);
  const launches: TicketRange[] = [];
  const copies: Tensor[] = [];
  try {
    const tensors = new Map<string, Tensor>(results);
    for (const [index, name] of names.entries()) {
      const operand = call.inputs[index];
      if (results.has(name)) copyOnDevice(operand, results.get(name)!, launches);
      else tensors.set(name, readable(host, context, info, name, operand, { launches, copies }));
    }
    for (const [name, result] of results)
      if (!names.includes(name) && argumentOf(info, name)?.access === "readwrite" && result.size > 0)
        zeroOnDevice(context, host.operation, result, launches);
    const layout = layoutArguments(host.operation, info, tensors, (name) => name in others);
    launches.push(encode(host, context, info, { ...layout, ...others }, tensors, call.attributes));
    return spanOf([...launches.slice(0, -1), lastElement(launches)]);
  } finally {
    for (const copy of copies) copy.dispose(); // the device keeps its memory until it is done
  }
}

/**
 * Compiles the kernel; a failure is a reason to fall back. Failures are not remembered by name, since another kernel
 * with this name may compile.
 */
function compiledFor({ operation, compiled, declared }: KernelHost) {
  try {
    const result = compiled();
    if (result.context === metalContext()) return result;
  } catch (cause) {
    if (!(cause instanceof KernelCompileError) || !declared.fallback) throw cause;
    throw new BackendError(operation, cause.code, `it does not compile: ${cause.diagnostics}`, { cause });
  }
  const message =
    "it was created with another Metal context than the shared one, which has the tensors; omit context, or call run()";
  throw new ArgumentError(operation, "invalidArgument", message);
}

const argumentOf = ({ bindings }: PipelineInfo, name: string): PipelineBinding | undefined =>
  bindings.find((argument) => argument.kind === "buffer" && argument.name === name);

/** Checks that a kernel writes only results, so that it never changes its arguments. */
function checkWrites(operation: string, info: PipelineInfo, results: ReadonlyMap<string, Tensor>): void {
  const refuse = (name: string, reason: string) =>
    new ArgumentError(operation, "invalidArgument", `argument ${name}: ${reason}`);
  const names = info.bindings.filter(({ kind }) => kind === "buffer").map(({ name }) => name);
  for (const name of results.keys()) {
    const argument = argumentOf(info, name);
    const known = names.join(", ") || "none";
    if (!argument)
      throw refuse(name, `shapes lists it as a result, but the kernel has no such argument; it has: ${known}`);
    if (argument.access === "read") throw refuse(name, "shapes lists it as a result, but the kernel only reads it");
  }
  for (const { name, kind, access, used } of info.bindings)
    if (kind === "buffer" && access !== "read" && used && !results.has(name))
      throw refuse(name, "the kernel writes it; add it to shapes as a result");
}

/** Returns an operand that the kernel can read: with any strides if it supports them, else dense. */
function readable(
  { declared: { strided } }: KernelHost,
  context: MetalContext,
  info: PipelineInfo,
  name: string,
  operand: Tensor,
  made: { launches: TicketRange[]; copies: Tensor[] },
): Tensor {
  const mayStride = strided === true || (strided !== false && strided.includes(name));
  if (operand.isContiguous) return operand;
  if (mayStride && (startOf(operand) === 0 || readsOffset(info, name))) return operand;
  const copy = denseCopy(context, operand, made.launches);
  made.copies.push(copy);
  return copy;
}

function encode(
  host: KernelHost,
  context: MetalContext,
  info: PipelineInfo,
  others: Record<string, BindingValue>,
  tensors: ReadonlyMap<string, Tensor>,
  call: KernelCall,
): TicketRange {
  const views = [...tensors].map(([name, tensor]) => [name, new StridedTensor(tensor)] as const);
  const bindings = { ...others, ...Object.fromEntries(views) };
  const grid = gridOf(host, call, tensors);
  const bound = bindArguments(context, host.operation, info, bindings, grid.threadgroupMemory);
  try {
    const ticket = host.dispatch(bound, grid);
    return { first: ticket, last: ticket };
  } finally {
    bound.dispose();
  }
}

/** Returns the call's grid, else the declared one, else one thread per element of the first result. */
function gridOf(
  { operation, declared }: KernelHost,
  { grid: callGrid, results }: KernelCall,
  tensors: ReadonlyMap<string, Tensor>,
): KernelGrid {
  const shapes = Object.fromEntries([...tensors].map(([name, { shape }]) => [name, shape]));
  const resolved = (what: string, size: Declared["grid"]): Size | undefined =>
    typeof size === "function" ? sizeOf(operation, what, size(shapes)) : size;
  const isOwn = callGrid.grid !== undefined || callGrid.threadgroups !== undefined;
  const grid = isOwn ? callGrid.grid : resolved("grid", declared.grid);
  const threadgroups = isOwn ? callGrid.threadgroups : resolved("threadgroups", declared.threadgroups);
  return {
    grid: grid ?? (threadgroups === undefined ? tensors.get(results[0].name)!.size : undefined),
    threadgroups,
    threadgroup: callGrid.threadgroup ?? declared.threadgroup,
    threadgroupMemory: { ...declared.threadgroupMemory, ...callGrid.threadgroupMemory },
    label: callGrid.label,
  };
}

function sizeOf(operation: string, what: string, size: number | Sizes): Size {
  const list = typeof size === "number" ? [size] : size;
  if (Array.isArray(list) && list.length >= 1 && list.length <= 3) return list as unknown as Size;
  const message = `expected ${what} to give a number or a list of one to three numbers, got ${describeValue(size)}`;
  throw new ShapeError(operation, "invalidArgument", message);
}

/** Computes a call with the kernel's fallback, whose operations run on the backend. */
function runFallback(host: KernelHost, backend: BackendName, call: OperationCall<KernelCall>): void {
  const { names, others, results } = call.attributes;
  const body = () => {
    // Views without autograd history, since the tensors may be disposed of before the call is recomputed.
    const views = call.inputs.map(({ storage, dtype, shape, strides, offset }) => {
      return new Tensor(storage, dtype, shape, strides, offset);
    });
    const values = { ...others, ...Object.fromEntries(names.map((name, index) => [name, views[index]])) };
    const given = host.declared.fallback!(values);
    for (const [index, spec] of results.entries())
      copyBetween(host.operation, fallbackResult(host, given, spec), call.outputs[index], backend);
  };
  withBackend(backend, () => noGrad(() => tidy(body)));
}

function fallbackResult(
  { operation, declared }: KernelHost,
  given: unknown,
  { name, shape, dtype }: ResultSpec,
): Tensor {
  const isOnly = Tensor.isTensor(given) && declared.shapes.size === 1;
  const result = isOnly ? given : (given as Record<string, unknown> | null | undefined)?.[name];
  if (!Tensor.isTensor(result)) {
    const message = `expected the fallback to return a tensor for result ${name}, got ${describeValue(result)}`;
    throw new ArgumentError(operation, "wrongFallback", message);
  }
  result.checkAlive(operation);
  if (result.dtype === dtype && sameShape(result.shape, shape)) return result;
  const expected = `expected ${dtype}[${shape.join(", ")}] from the fallback for result ${name}`;
  const Class = result.dtype === dtype ? ShapeError : DTypeError;
  throw new Class(operation, "wrongFallback", `${expected}, got ${result.describe()}`);
}
