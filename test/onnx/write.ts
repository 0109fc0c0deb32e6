/** Writes small ONNX files, field by field, as protocol buffers encode them. */

/** An encoded field. */
export type Field = Uint8Array;

function varintBytes(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest < 128 ? rest : (rest % 128) + 128);
    if (rest < 128) return bytes;
  }
}

export const varint = (number: number, value: number): Field =>
  Uint8Array.from([...varintBytes(number * 8), ...varintBytes(value)]);

export const bytes = (number: number, content: Uint8Array): Field =>
  Uint8Array.from([...varintBytes(number * 8 + 2), ...varintBytes(content.length), ...content]);

export const text = (number: number, value: string): Field => bytes(number, new TextEncoder().encode(value));

export const message = (number: number, fields: readonly Field[]): Field => bytes(number, Buffer.concat(fields));

export const float32 = (values: readonly number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);

/** A node of a graph. */
export const node = (operator: string, inputs: readonly string[], outputs: readonly string[], domain = ""): Field =>
  message(1, [
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, operator),
    text(7, domain),
  ]);

/** A tensor of float32 of a graph. */
export const initializer = (name: string, shape: readonly number[], values: readonly number[]): Field =>
  message(5, [...shape.map((size) => varint(1, size)), varint(2, 1), text(8, name), bytes(9, float32(values))]);

/** The type of an input or output: float32 of a shape whose sizes are numbers or names. */
export const tensorInput = (name: string, shape: readonly (number | string)[]): readonly [string, Field] => {
  const dims = shape.map((size) => message(1, [typeof size === "number" ? varint(1, size) : text(2, size)]));
  return [name, message(2, [message(1, [varint(1, 1), message(2, dims)])])];
};

interface GraphParts {
  readonly nodes: readonly Field[];
  readonly initializers: readonly Field[];
  readonly inputs: readonly (readonly [string, Field])[];
  readonly outputs: readonly (readonly [string, Field])[];
  readonly extra?: readonly Field[];
}

/** The graph of a model. */
export function graph({ nodes, initializers, inputs, outputs, extra = [] }: GraphParts): Field {
  const value = (number: number, [name, type]: readonly [string, Field]) => message(number, [text(1, name), type]);
  return message(7, [
    ...nodes,
    ...initializers,
    ...inputs.map((each) => value(11, each)),
    ...outputs.map((each) => value(12, each)),
    ...extra,
  ]);
}

/** A model of operator set 17. */
export const model = (content: Field): Uint8Array =>
  Buffer.concat([varint(1, 8), content, message(8, [text(1, ""), varint(2, 17)])]);
