/** Prepares a kernel's tensors on the device: makes them dense if needed, and passes shapes and strides on request. */
import { ArgumentError } from "../../core/errors.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import type { Implementation, TicketRange } from "../backend.ts";
import { primitiveOf } from "../primitive.ts";
import type { ScalarTypeName } from "./abi.ts";
import type { NumericArray } from "./buffer.ts";
import type { MetalContext } from "./context.ts";
import { startOf } from "./launch.ts";
import { MetalMemory } from "./memory.ts";
import type { PipelineBinding, PipelineInfo } from "./pipeline.ts";
import { dataTypeName, dataTypeOf } from "./scalars.ts";

/** Makes a dense copy on the device. Its memory is freed once the kernel has read it. */
export function denseCopy(context: MetalContext, x: Tensor, copies: TicketRange[]): Tensor {
  const memory = new MetalMemory(context, byteLengthOf(x.shape, x.dtype));
  const result = new Tensor(new Storage(memory), x.dtype, x.shape);
  try {
    copyOnDevice(x, result, copies);
    return result;
  } catch (error) {
    result.dispose();
    throw error;
  }
}

/** Copies elements on the device between any strides. */
export function copyOnDevice(from: Tensor, to: Tensor, copies: TicketRange[]): void {
  const copy = primitiveOf("copy").implementations.metal as Implementation<unknown>;
  const launched = copy.run({ operation: "copy", inputs: [from], outputs: [to], attributes: undefined });
  if (launched) copies.push(launched);
}

const ticketScratch = new BigUint64Array(1);

/** Fills a dense result with zeros, in order with dispatches. */
export function zeroOnDevice(context: MetalContext, operation: string, x: Tensor, copies: TicketRange[]): void {
  const { handle } = x.storage.memory as MetalMemory;
  const bytes = bytesOf(x.dtype);
  const status = context.native.orchard_buffer_fill(handle, x.offset * bytes, x.size * bytes, 0, ticketScratch);
  context.call(operation, status);
  const ticket = Number(ticketScratch[0]);
  copies.push({ first: ticket, last: ticket });
}

const facts = {
  shape: ({ shape }: Tensor) => shape,
  strides: ({ strides }: Tensor) => strides,
  ndim: ({ rank }: Tensor) => [rank],
  size: ({ size }: Tensor) => [size],
  offset: (tensor: Tensor) => [startOf(tensor)],
} as const;
const factName = new RegExp(`^(.+)_(${Object.keys(facts).join("|")})$`);

/** Whether a kernel has an argument for the offset of a tensor's first element. */
export const readsOffset = ({ bindings }: PipelineInfo, name: string): boolean =>
  bindings.some((argument) => argument.name === `${name}_offset`);

/**
 * Returns the layout arguments that the kernel has and the caller did not pass: for a tensor `x` these are `x_shape`,
 * `x_strides`, `x_ndim`, `x_size` and `x_offset`, in elements.
 */
export function layoutArguments(
  operation: string,
  { bindings }: PipelineInfo,
  tensors: ReadonlyMap<string, Tensor>,
  isGiven: (name: string) => boolean,
): Record<string, NumericArray> {
  const result: Record<string, NumericArray> = {};
  for (const argument of bindings) {
    const [, of = "", fact] = factName.exec(argument.name) ?? [];
    const tensor = tensors.get(of);
    if (tensor === undefined || isGiven(argument.name) || argument.kind !== "buffer") continue;
    result[argument.name] = encoded(operation, argument, facts[fact as keyof typeof facts](tensor));
  }
  return result;
}

const integerArrays: Readonly<Partial<Record<ScalarTypeName, (values: readonly number[]) => NumericArray>>> = {
  int: (values) => Int32Array.from(values),
  uint: (values) => Uint32Array.from(values),
  long: (values) => BigInt64Array.from(values, BigInt),
  ulong: (values) => BigUint64Array.from(values, (value) => BigInt.asUintN(64, BigInt(value))),
};

function encoded(
  operation: string,
  { name, dataType, dataSize }: PipelineBinding,
  values: readonly number[],
): NumericArray {
  const type = dataTypeOf(dataType);
  const make = type && integerArrays[type.scalar];
  if (!make) {
    const has = type ? dataTypeName(type) : "a struct";
    const message = `argument ${name}: expected int, uint, long or ulong for it in the kernel, got ${has}`;
    throw new ArgumentError(operation, "invalidArgument", message);
  }
  // pads a scalar to one element, and a vector of three to four
  const least = Math.max(1, dataSize / make([0]).BYTES_PER_ELEMENT);
  return make([...values, ...new Array<number>(Math.max(0, least - values.length)).fill(0)]);
}
