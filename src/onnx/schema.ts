/**
 * The messages of an ONNX file as plain objects: the fields of onnx.proto, IR version 14, that a model's meaning
 * depends on. Field numbers are from https://github.com/onnx/onnx/blob/v1.23.2/onnx/onnx.proto.
 */
import type { PbfReader } from "pbf";
import { messageOf } from "../core/causes.ts";
import { FileFormatError } from "../core/errors.ts";
import { RANGE_FIELD } from "./outline.ts";

/** A tensor in the file. Its elements are in `raw`, in one of the typed lists, or in another file. */
export interface TensorProto {
  dims: number[];
  dataType: number;
  name: string;
  floats: number[];
  ints: bigint[];
  doubles: number[];
  strings: Uint8Array[];
  raw: Uint8Array | undefined;
  /** In an outline of a file: the position in the model's file of the bytes of `raw`. */
  range: FileRange | undefined;
  external: StringEntry[];
  isExternal: boolean;
}

/** A part of a file, in bytes. */
export interface FileRange {
  readonly position: number;
  readonly length: number;
}

export interface SparseTensorProto {
  values: TensorProto | undefined;
  indices: TensorProto | undefined;
  dims: number[];
}

interface StringEntry {
  key: string;
  value: string;
}

export interface AttributeProto {
  name: string;
  /** The name of the enclosing function's attribute from which this attribute takes its value. */
  reference: string;
  type: number;
  float: number;
  int: bigint;
  bytes: Uint8Array;
  tensor: TensorProto | undefined;
  sparse: SparseTensorProto | undefined;
  graph: GraphProto | undefined;
  typeProto: TypeProto | undefined;
  floats: number[];
  ints: bigint[];
  strings: Uint8Array[];
  tensors: TensorProto[];
  graphs: GraphProto[];
}

export interface NodeProto {
  inputs: string[];
  outputs: string[];
  name: string;
  operator: string;
  domain: string;
  overload: string;
  attributes: AttributeProto[];
}

export interface GraphProto {
  name: string;
  nodes: NodeProto[];
  initializers: TensorProto[];
  sparse: SparseTensorProto[];
  inputs: ValueProto[];
  outputs: ValueProto[];
}

export interface ValueProto {
  name: string;
  type: TypeProto | undefined;
}

export interface TypeProto {
  tensor: { elementType: number; shape: ShapeProto | undefined } | undefined;
  sequence: { element: TypeProto | undefined } | undefined;
  optional: { element: TypeProto | undefined } | undefined;
  /** Whether the type is not supported: a map, a sparse tensor, or an opaque type. */
  isOther: boolean;
}

export interface ShapeProto {
  dims: { value: number | undefined; parameter: string }[];
}

export interface OpsetProto {
  domain: string;
  version: number;
}

export interface FunctionProto {
  name: string;
  domain: string;
  overload: string;
  inputs: string[];
  outputs: string[];
  attributes: string[];
  defaults: AttributeProto[];
  nodes: NodeProto[];
  opsets: OpsetProto[];
}

export interface ModelProto {
  irVersion: number;
  producer: string;
  graph: GraphProto | undefined;
  opsets: OpsetProto[];
  /** The author's metadata, such as the names of classes. */
  metadata: StringEntry[];
  functions: FunctionProto[];
}

type Read<T> = (message: T, reader: PbfReader) => void;

/** Makes a reader of a message from its fields by number; unknown fields are skipped. */
const message =
  <T>(empty: () => T, fields: Readonly<Record<number, Read<T>>>) =>
  (reader: PbfReader): T =>
    reader.readMessage((tag, result, inner) => fields[tag]?.(result, inner), empty());

/** The wire type of a packed list: protocol buffers encode numbers in one such field, or each in a separate field. */
const LENGTH_DELIMITED = 2;

function readInts(list: bigint[], reader: PbfReader): void {
  if (reader.type === LENGTH_DELIMITED) for (const value of varintsIn(reader.readBytes())) list.push(value);
  else list.push(readInt(reader));
}

/** Reads all 64 bits, which a JavaScript number can't represent. */
function readInt(reader: PbfReader): bigint {
  const start = reader.pos;
  while (reader.buf[reader.pos] >= 0x80) reader.pos++;
  reader.pos++;
  const [value] = varintsIn(reader.buf.subarray(start, reader.pos));
  return value ?? 0n;
}

function* varintsIn(bytes: Uint8Array): Generator<bigint> {
  let [value, shift] = [0n, 0n];
  for (const byte of bytes) {
    value |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
    if (byte >= 0x80) continue;
    yield BigInt.asIntN(64, value);
    [value, shift] = [0n, 0n];
  }
}

const entry = message<StringEntry>(() => ({ key: "", value: "" }), {
  1: (it, reader) => (it.key = reader.readString()),
  2: (it, reader) => (it.value = reader.readString()),
});

/** Reads a TensorProto that stands alone, such as an input of a test. */
export const tensorProto = message<TensorProto>(
  () => ({
    dims: [],
    dataType: 0,
    name: "",
    floats: [],
    ints: [],
    doubles: [],
    strings: [],
    raw: undefined,
    range: undefined,
    external: [],
    isExternal: false,
  }),
  {
    1: (it, reader) => numbersInto(it.dims, reader),
    2: (it, reader) => (it.dataType = reader.readVarint()),
    4: (it, reader) => void (isPacked(reader) ? reader.readPackedFloat(it.floats) : it.floats.push(reader.readFloat())),
    5: (it, reader) => readInts(it.ints, reader),
    6: (it, reader) => it.strings.push(reader.readBytes()),
    7: (it, reader) => readInts(it.ints, reader),
    8: (it, reader) => (it.name = reader.readString()),
    9: (it, reader) => (it.raw = reader.readBytes()),
    10: (it, reader) =>
      void (isPacked(reader) ? reader.readPackedDouble(it.doubles) : it.doubles.push(reader.readDouble())),
    11: (it, reader) => readInts(it.ints, reader),
    13: (it, reader) => it.external.push(entry(reader)),
    14: (it, reader) => (it.isExternal = reader.readVarint() === 1),
    [RANGE_FIELD]: (it, reader) => (it.range = rangeIn(reader.readBytes())),
  },
);

function rangeIn(bytes: Uint8Array): FileRange {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { position: view.getFloat64(0, true), length: view.getFloat64(8, true) };
}

const isPacked = (reader: PbfReader): boolean => reader.type === LENGTH_DELIMITED;

function numbersInto(list: number[], reader: PbfReader): void {
  const ints: bigint[] = [];
  readInts(ints, reader);
  for (const value of ints) list.push(Number(value));
}

const sparseTensor = message<SparseTensorProto>(() => ({ values: undefined, indices: undefined, dims: [] }), {
  1: (it, reader) => (it.values = tensorProto(reader)),
  2: (it, reader) => (it.indices = tensorProto(reader)),
  3: (it, reader) => numbersInto(it.dims, reader),
});

const dimension = message<ShapeProto["dims"][number]>(() => ({ value: undefined, parameter: "" }), {
  1: (it, reader) => (it.value = Number(readInt(reader))),
  2: (it, reader) => (it.parameter = reader.readString()),
});

const shape = message<ShapeProto>(() => ({ dims: [] }), { 1: (it, reader) => it.dims.push(dimension(reader)) });

const tensorType = message<NonNullable<TypeProto["tensor"]>>(() => ({ elementType: 0, shape: undefined }), {
  1: (it, reader) => (it.elementType = reader.readVarint()),
  2: (it, reader) => (it.shape = shape(reader)),
});

const containerType = message<NonNullable<TypeProto["sequence"]>>(() => ({ element: undefined }), {
  1: (it, reader) => (it.element = typeProto(reader)),
});

const other: Read<TypeProto> = (it) => (it.isOther = true);

const typeFields: Readonly<Record<number, Read<TypeProto>>> = {
  1: (it, reader) => (it.tensor = tensorType(reader)),
  4: (it, reader) => (it.sequence = containerType(reader)),
  5: other,
  7: other,
  8: other,
  9: (it, reader) => (it.optional = containerType(reader)),
};

function typeProto(reader: PbfReader): TypeProto {
  const empty = { tensor: undefined, sequence: undefined, optional: undefined, isOther: false };
  return message<TypeProto>(() => empty, typeFields)(reader);
}

const value = message<ValueProto>(() => ({ name: "", type: undefined }), {
  1: (it, reader) => (it.name = reader.readString()),
  2: (it, reader) => (it.type = typeProto(reader)),
});

const emptyAttribute = (): AttributeProto => ({
  name: "",
  reference: "",
  type: 0,
  float: 0,
  int: 0n,
  bytes: new Uint8Array(),
  tensor: undefined,
  sparse: undefined,
  graph: undefined,
  typeProto: undefined,
  floats: [],
  ints: [],
  strings: [],
  tensors: [],
  graphs: [],
});

const attributeFields: Readonly<Record<number, Read<AttributeProto>>> = {
  1: (it, reader) => (it.name = reader.readString()),
  2: (it, reader) => (it.float = reader.readFloat()),
  3: (it, reader) => (it.int = readInt(reader)),
  4: (it, reader) => (it.bytes = reader.readBytes()),
  5: (it, reader) => (it.tensor = tensorProto(reader)),
  6: (it, reader) => (it.graph = graphProto(reader)),
  7: (it, reader) => void (isPacked(reader) ? reader.readPackedFloat(it.floats) : it.floats.push(reader.readFloat())),
  8: (it, reader) => readInts(it.ints, reader),
  9: (it, reader) => it.strings.push(reader.readBytes()),
  10: (it, reader) => it.tensors.push(tensorProto(reader)),
  11: (it, reader) => it.graphs.push(graphProto(reader)),
  14: (it, reader) => (it.typeProto = typeProto(reader)),
  20: (it, reader) => (it.type = reader.readVarint()),
  21: (it, reader) => (it.reference = reader.readString()),
  22: (it, reader) => (it.sparse = sparseTensor(reader)),
};

const attribute = (reader: PbfReader): AttributeProto => message(emptyAttribute, attributeFields)(reader);

const node = message<NodeProto>(
  () => ({ inputs: [], outputs: [], name: "", operator: "", domain: "", overload: "", attributes: [] }),
  {
    1: (it, reader) => it.inputs.push(reader.readString()),
    2: (it, reader) => it.outputs.push(reader.readString()),
    3: (it, reader) => (it.name = reader.readString()),
    4: (it, reader) => (it.operator = reader.readString()),
    5: (it, reader) => it.attributes.push(attribute(reader)),
    7: (it, reader) => (it.domain = reader.readString()),
    8: (it, reader) => (it.overload = reader.readString()),
  },
);

const graphFields: Readonly<Record<number, Read<GraphProto>>> = {
  1: (it, reader) => it.nodes.push(node(reader)),
  2: (it, reader) => (it.name = reader.readString()),
  5: (it, reader) => it.initializers.push(tensorProto(reader)),
  11: (it, reader) => it.inputs.push(value(reader)),
  12: (it, reader) => it.outputs.push(value(reader)),
  15: (it, reader) => it.sparse.push(sparseTensor(reader)),
};

/** Graphs nest in attributes; without this limit, a hostile file would overflow the stack. */
const MOST_NESTED = 64;
let nested = 0;

function graphProto(reader: PbfReader): GraphProto {
  try {
    if (++nested > MOST_NESTED) throw new Error(`graphs are nested more than ${MOST_NESTED} deep`);
    const empty = { name: "", nodes: [], initializers: [], sparse: [], inputs: [], outputs: [] };
    return message<GraphProto>(() => empty, graphFields)(reader);
  } finally {
    nested--;
  }
}

const opset = message<OpsetProto>(() => ({ domain: "", version: 0 }), {
  1: (it, reader) => (it.domain = reader.readString()),
  2: (it, reader) => (it.version = Number(readInt(reader))),
});

const functionProto = message<FunctionProto>(
  () => ({
    name: "",
    domain: "",
    overload: "",
    inputs: [],
    outputs: [],
    attributes: [],
    defaults: [],
    nodes: [],
    opsets: [],
  }),
  {
    1: (it, reader) => (it.name = reader.readString()),
    4: (it, reader) => it.inputs.push(reader.readString()),
    5: (it, reader) => it.outputs.push(reader.readString()),
    6: (it, reader) => it.attributes.push(reader.readString()),
    7: (it, reader) => it.nodes.push(node(reader)),
    9: (it, reader) => it.opsets.push(opset(reader)),
    10: (it, reader) => (it.domain = reader.readString()),
    11: (it, reader) => it.defaults.push(attribute(reader)),
    13: (it, reader) => (it.overload = reader.readString()),
  },
);

const modelFields: Readonly<Record<number, Read<ModelProto>>> = {
  1: (it, reader) => (it.irVersion = Number(readInt(reader))),
  2: (it, reader) => (it.producer = reader.readString()),
  7: (it, reader) => (it.graph = graphProto(reader)),
  8: (it, reader) => it.opsets.push(opset(reader)),
  14: (it, reader) => it.metadata.push(entry(reader)),
  25: (it, reader) => it.functions.push(functionProto(reader)),
};

/**
 * Reads a model.
 *
 * @param path names the file in errors
 * @throws {FileFormatError} if the bytes are not an ONNX model
 */
export async function readModelProto(bytes: Uint8Array, path: string): Promise<ModelProto> {
  const { PbfReader } = await import("pbf"); // loaded on first use, since most programs read no ONNX file
  const empty: ModelProto = { irVersion: 0, producer: "", graph: undefined, opsets: [], metadata: [], functions: [] };
  try {
    return new PbfReader(bytes).readFields((tag, it, reader) => modelFields[tag]?.(it, reader), empty);
  } catch (error) {
    throw new FileFormatError("loadOnnx", "damaged", path, `it is not an ONNX model: ${messageOf(error)}`);
  }
}
