/** Writes ONNX files: graphs of nodes, as protocol buffers. Field numbers are from {@link ../schema.ts}. */
import type { PbfWriter } from "pbf";
import type { DType } from "../../tensor/dtype.ts";

/** A number in an attribute that is a float in the standard. */
export interface Float {
  readonly float: number;
}

/** An attribute: an integer, a float, a string, or a list of integers or strings. */
export type WrittenAttribute = number | Float | string | readonly number[] | readonly string[];

export interface WrittenNode {
  readonly operator: string;
  readonly name?: string | undefined;
  /** Names of values; empty for an input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, WrittenAttribute>> | undefined;
}

/** A constant; its elements are little-endian. */
export interface WrittenTensor {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** An input or output. A size that may vary is a name. */
export interface WrittenValue {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly (number | string)[];
}

export interface WrittenGraph {
  readonly nodes: readonly WrittenNode[];
  readonly constants: readonly WrittenTensor[];
  readonly inputs: readonly WrittenValue[];
  readonly outputs: readonly WrittenValue[];
}

/** The version of the standard's operators that written files use. */
export const WRITTEN_OPSET = 18;
/** The first version of the format that has these operators. */
const IR_VERSION = 8;

/** The numbers of TensorProto.DataType. */
export const elementTypes: Readonly<Record<DType, number>> = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  complex64: 14,
  complex128: 15,
  bfloat16: 16,
};

/** The numbers of AttributeProto.AttributeType. */
const attributeTypes = { float: 1, int: 2, text: 3, ints: 7, texts: 8 } as const;

/** Returns the bytes of a file. */
export async function encodeModel(graph: WrittenGraph): Promise<Uint8Array> {
  const { PbfWriter } = await import("pbf"); // loaded on first use, since most programs write no ONNX file
  const writer = new PbfWriter();
  writer.writeVarintField(1, IR_VERSION);
  writer.writeStringField(2, "orchard-metal");
  writer.writeMessage(7, writeGraph, graph);
  writer.writeMessage(8, writeOpset, WRITTEN_OPSET);
  return writer.finish();
}

function writeGraph({ nodes, constants, inputs, outputs }: WrittenGraph, writer: PbfWriter): void {
  for (const node of nodes) writer.writeMessage(1, writeNode, node);
  writer.writeStringField(2, "graph");
  for (const constant of constants) writer.writeMessage(5, writeTensor, constant);
  for (const input of inputs) writer.writeMessage(11, writeValue, input);
  for (const output of outputs) writer.writeMessage(12, writeValue, output);
}

function writeOpset(version: number, writer: PbfWriter): void {
  writer.writeStringField(1, "");
  writer.writeVarintField(2, version);
}

function writeNode({ operator, name, inputs, outputs, attributes = {} }: WrittenNode, writer: PbfWriter): void {
  for (const input of inputs) writer.writeStringField(1, input);
  for (const output of outputs) writer.writeStringField(2, output);
  if (name !== undefined) writer.writeStringField(3, name);
  writer.writeStringField(4, operator);
  for (const attribute of Object.entries(attributes)) writer.writeMessage(5, writeAttribute, attribute);
}

function writeAttribute([name, value]: readonly [string, WrittenAttribute], writer: PbfWriter): void {
  writer.writeStringField(1, name);
  if (typeof value === "number") writer.writeVarintField(3, value);
  else if (typeof value === "string") writer.writeBytesField(4, new TextEncoder().encode(value));
  else if (isFloatValue(value)) writer.writeFloatField(2, value.float);
  else
    for (const each of value)
      if (typeof each === "number") writer.writeVarintField(8, each);
      else writer.writeBytesField(9, new TextEncoder().encode(each));
  writer.writeVarintField(20, attributeTypes[kindOf(value)]);
}

const isFloatValue = (value: WrittenAttribute): value is Float => typeof value === "object" && "float" in value;

function kindOf(value: WrittenAttribute): keyof typeof attributeTypes {
  if (typeof value === "number") return "int";
  if (typeof value === "string") return "text";
  if (isFloatValue(value)) return "float";
  return typeof value[0] === "string" ? "texts" : "ints";
}

function writeTensor({ name, dtype, shape, bytes }: WrittenTensor, writer: PbfWriter): void {
  for (const size of shape) writer.writeVarintField(1, size);
  writer.writeVarintField(2, elementTypes[dtype]);
  writer.writeStringField(8, name);
  writer.writeBytesField(9, bytes);
}

function writeValue({ name, dtype, shape }: WrittenValue, writer: PbfWriter): void {
  writer.writeStringField(1, name);
  writer.writeMessage(2, writeType, { dtype, shape });
}

type Type = Omit<WrittenValue, "name">;

function writeType(type: Type, writer: PbfWriter): void {
  writer.writeMessage(1, writeTensorType, type);
}

function writeTensorType({ dtype, shape }: Type, writer: PbfWriter): void {
  writer.writeVarintField(1, elementTypes[dtype]);
  writer.writeMessage(2, writeShape, shape);
}

function writeShape(shape: Type["shape"], writer: PbfWriter): void {
  for (const size of shape) writer.writeMessage(1, writeDimension, size);
}

function writeDimension(size: number | string, writer: PbfWriter): void {
  if (typeof size === "number") writer.writeVarintField(1, size);
  else writer.writeStringField(2, size);
}
