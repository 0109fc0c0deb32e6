import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { operand, parameters, reading } from "../../core/parameters.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { reachOf } from "../../tensor/reach.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { Access, MAX_INLINE_BYTES } from "./abi.ts";
import { asBytes } from "./block.ts";
import { DeviceBuffer, type NumericArray, type NumericArrayConstructor } from "./buffer.ts";
import type { MetalContext } from "./context.ts";
import { checkElements } from "./elements.ts";
import type { BoundBuffer, InlineBytes, ThreadgroupMemory } from "./encode.ts";
import { aNumericArray, anArrayType, wholeNumber } from "./kinds.ts";
import { MetalMemory } from "./memory.ts";
import type { PipelineBinding, PipelineInfo } from "./pipeline.ts";
import { dataTypeName, dataTypeOf, encodeScalar, type ScalarValue } from "./scalars.ts";

/** A request for an output array; see {@link output}. */
export interface OutputRequest<T extends NumericArray = NumericArray> {
  readonly type: NumericArrayConstructor<T>;
  readonly length: number;
}

/** A part of a device buffer that starts at a byte offset. */
export interface BufferSlice {
  readonly buffer: DeviceBuffer;
  readonly byteOffset: number;
}

/** A value that an argument may be bound to. */
export type BindingValue = NumericArray | OutputRequest | DeviceBuffer | BufferSlice | Tensor | ScalarValue;

/** A tensor with any strides, which the kernel handles. It is bound at its lowest element. */
export class StridedTensor {
  constructor(readonly tensor: Tensor) {}
}

/** The returned arrays: one for each typed array or {@link output} in the bindings. */
export type Outputs<Bindings> = {
  -readonly [Name in keyof Bindings as Bindings[Name] extends NumericArray | OutputRequest
    ? Name
    : never]: Bindings[Name] extends OutputRequest<infer T> ? T : Bindings[Name];
};

/**
 * Requests an array that the kernel writes, without copying contents to the device.
 *
 * @param type such as `Float32Array`
 * @param length number of elements
 *
 * @example
 * const { outputs } = kernel.run({ x, y: output(Float32Array, 100) }, { grid: 100 });
 * outputs.y; // Float32Array(100)
 *
 * @throws {ArgumentError} for an unsupported type, or a length below 1.
 */
export function output<T extends NumericArray>(type: NumericArrayConstructor<T>, length: number): OutputRequest<T>;
export function output(...values: unknown[]): OutputRequest {
  return outputParameters(values);
}

const outputParameters = parameters("output", { type: operand(anArrayType), length: operand(wholeNumber) });

/** The arguments of a dispatch, with temporary buffers for typed arrays. */
export class BoundArguments<Bindings> {
  readonly buffers: BoundBuffer[] = [];
  readonly inline: InlineBytes[] = [];
  readonly threadgroupMemory: ThreadgroupMemory[] = [];
  private readonly temporaries: { name: string; buffer: DeviceBuffer; read?: () => NumericArray }[] = [];

  constructor(
    private readonly context: MetalContext,
    private readonly operation: string,
  ) {}

  bind(argument: PipelineBinding, value: BindingValue | StridedTensor): void {
    if (typeof value === "object" && value === null) throw this.refuse(argument.name, "expected a value, got null");
    if (value instanceof DeviceBuffer) this.bindBuffer(argument, value, 0);
    else if (value instanceof Tensor) this.bindDense(argument, value);
    else if (value instanceof StridedTensor) this.bindTensor(argument, value.tensor);
    else if (isSlice(value)) this.bindBuffer(argument, value.buffer, value.byteOffset);
    else if (ArrayBuffer.isView(value)) this.bindArray(argument, value);
    else if (isOutput(value)) this.bindOutput(argument, value);
    else this.bindScalar(argument, value);
  }

  private bindBuffer({ index, access, name }: PipelineBinding, buffer: DeviceBuffer, offset: number): void {
    if (buffer.context !== this.context) throw this.refuse(name, "the buffer belongs to another Metal context");
    this.buffers.push({ buffer: buffer.handle, offset, length: 0, index, access: Access[access] });
  }

  /** Binds an operand or a result of a call that a `kernelOverride` computes. */
  private bindDense(argument: PipelineBinding, tensor: Tensor): void {
    if (!tensor.isContiguous)
      throw this.refuse(argument.name, "expected a contiguous tensor; use contiguous(x), or apply(), which copies");
    this.bindTensor(argument, tensor);
  }

  private bindTensor(argument: PipelineBinding, tensor: Tensor): void {
    const { index, access, name } = argument;
    const { memory } = tensor.storage;
    if (!(memory instanceof MetalMemory) || memory.context !== this.context)
      throw this.refuse(name, "the tensor is not on this device; apply() accepts tensors from anywhere");
    checkElements(this.operation, argument, tensor);
    const bytes = bytesOf(tensor.dtype);
    const { first, count } = reachOf(tensor);
    const [offset, length] = [first * bytes, count * bytes];
    if (access !== "read") tensor.storage.version++; // counts as an in-place change
    this.buffers.push({ buffer: memory.handle, offset, length, index, access: Access[access] });
  }

  private bindArray(argument: PipelineBinding, array: NumericArray): void {
    const { name, access, index } = argument;
    if (aNumericArray.parse(array, this.operation, name) === undefined)
      throw this.refuse(name, `expected ${aNumericArray.expected}, got ${describeValue(array)}`);
    if (array.byteLength === 0) throw this.refuse(name, "the array is empty; a kernel needs at least one element");
    if (access === "read" && array.byteLength <= MAX_INLINE_BYTES) {
      this.inline.push({ index, bytes: asBytes(array) });
      return;
    }
    const buffer = this.temporary(name, array);
    if (access !== "read") this.returns(name, buffer, array.constructor as NumericArrayConstructor<NumericArray>);
    this.bindBuffer(argument, buffer, 0);
  }

  private bindOutput(argument: PipelineBinding, { type, length }: OutputRequest): void {
    if (argument.access === "read") throw this.refuse(argument.name, "the kernel only reads it; pass an array");
    if (anArrayType.parse(type, this.operation, argument.name) === undefined)
      throw this.refuse(argument.name, `expected ${anArrayType.expected} as type, got ${describeValue(type)}`);
    if (!Number.isSafeInteger(length) || length < 1)
      throw this.refuse(argument.name, `expected an output of at least 1 element, got ${describeValue(length)}`);
    const buffer = this.temporary(argument.name, length * type.BYTES_PER_ELEMENT);
    this.returns(argument.name, buffer, type);
    this.bindBuffer(argument, buffer, 0);
  }

  private bindScalar({ name, dataType, dataSize, index, access }: PipelineBinding, value: ScalarValue): void {
    const type = dataTypeOf(dataType);
    if (access !== "read") throw this.refuse(name, "the kernel writes it; pass an array, an output or a DeviceBuffer");
    if (!type) throw this.refuse(name, `it points to a struct of ${dataSize} bytes; pass them in a typed array`);
    const bytes = encodeScalar(type, value);
    if (typeof bytes === "string") throw this.refuse(name, `${bytes} (it is ${dataTypeName(type)})`);
    this.inline.push({ index, bytes });
  }

  private temporary(name: string, content: number | NumericArray): DeviceBuffer {
    const buffer = new DeviceBuffer(content, { context: this.context, label: name, storage: "shared" });
    this.temporaries.push({ name, buffer });
    return buffer;
  }

  private returns(name: string, buffer: DeviceBuffer, type: NumericArrayConstructor<NumericArray>): void {
    const entry = this.temporaries.find((candidate) => candidate.buffer === buffer);
    if (entry) entry.read = () => buffer.read(type);
    else this.temporaries.push({ name, buffer, read: () => buffer.read(type) });
  }

  private refuse(name: string, reason: string): ArgumentError {
    return new ArgumentError(this.operation, "invalidArgument", `argument ${name}: ${reason}`);
  }

  outputNames(): string[] {
    return this.temporaries.filter(({ read }) => read).map(({ name }) => name);
  }

  readOutputs(): Outputs<Bindings> {
    const pairs = this.temporaries.flatMap(({ name, read }) => (read ? [[name, read()]] : []));
    return Object.fromEntries(pairs);
  }

  dispose(): void {
    for (const { buffer } of this.temporaries) buffer.dispose();
  }
}

/**
 * Matches values to a kernel's arguments by name.
 *
 * @throws {ArgumentError} with the name of the missing, unknown or unsuitable argument.
 */
export function bindArguments<Bindings extends Record<string, BindingValue | StridedTensor>>(
  context: MetalContext,
  operation: string,
  info: PipelineInfo,
  bindings: Bindings,
  threadgroupMemory: Record<string, number>,
): BoundArguments<Bindings> {
  return reading(operation, () => {
    checkNames(operation, "buffer", info, bindings);
    checkNames(operation, "threadgroup", info, threadgroupMemory);
    const bound = new BoundArguments<Bindings>(context, operation);
    try {
      for (const argument of info.bindings) {
        if (argument.kind === "threadgroup")
          bound.threadgroupMemory.push({
            index: argument.index,
            length: bytesOfArgument(operation, argument, threadgroupMemory),
          });
        else if (argument.name in bindings) bound.bind(argument, bindings[argument.name]);
      }
    } catch (error) {
      bound.dispose();
      throw error;
    }
    return bound;
  });
}

function bytesOfArgument(operation: string, { name }: PipelineBinding, given: Record<string, number>): number {
  const bytes = given[name] ?? 0;
  if (wholeNumber.parse(bytes, operation, name) !== undefined) return bytes;
  const expected = `expected ${wholeNumber.expected} of bytes for ${name}`;
  throw new ArgumentError(operation, "invalidArgument", `${expected}, got ${describeValue(bytes)}`);
}

function checkNames(
  operation: string,
  kind: PipelineBinding["kind"],
  info: PipelineInfo,
  given: Record<string, unknown>,
): void {
  const { bindings } = info;
  const unknown = Object.keys(given).filter(
    (name) => !bindings.some((argument) => argument.kind === kind && argument.name === name),
  );
  const isMissing = (argument: PipelineBinding) =>
    argument.kind === kind && argument.used && given[argument.name] === undefined;
  if (unknown.length === 0 && !bindings.some(isMissing)) return; // the usual case, for which no texts are made
  const missing = bindings.filter(isMissing).map(({ name }) => name);
  const names = bindings.flatMap((argument) => (argument.kind === kind ? argument.name : [])).join(", ") || "none";
  const what = kind === "buffer" ? "argument" : "threadgroup memory argument";
  if (unknown.length > 0) {
    throw new ArgumentError(
      operation,
      "invalidArgument",
      `there is no ${what} ${unknown.join(", ")}; the kernel has: ${names}`,
    );
  }
  throw new ArgumentError(
    operation,
    "bindingMissing",
    `${what} ${missing.join(", ")} has no value; expected values for: ${names}`,
  );
}

function isSlice(value: BindingValue): value is BufferSlice {
  return typeof value === "object" && value !== null && "buffer" in value && value.buffer instanceof DeviceBuffer;
}

function isOutput(value: BindingValue): value is OutputRequest {
  return typeof value === "object" && value !== null && "type" in value;
}
