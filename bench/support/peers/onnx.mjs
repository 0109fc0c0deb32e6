// Models of a few nodes in ONNX's format, which is a message of Protocol Buffers (onnx.proto, version 8; operators 17).

const VARINT = 0;
const BYTES = 2;
const FIXED32 = 5;
const FLOAT32 = 1; // TensorProto.DataType

function varint(value) {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 128);
  }
}

const key = (field, wire) => varint(field * 8 + wire);
const whole = (field, value) => Buffer.concat([key(field, VARINT), varint(value)]);
const bytes = (field, value) => Buffer.concat([key(field, BYTES), varint(value.length), value]);
const text = (field, value) => bytes(field, Buffer.from(value));
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));
const each = (items, encode) => Buffer.concat(items.map(encode));

function real(field, value) {
  const encoded = Buffer.alloc(4);
  encoded.writeFloatLE(value);
  return Buffer.concat([key(field, FIXED32), encoded]);
}

// AttributeProto: its type is 2 for whole numbers, 1 for real ones.
const attribute = ([name, value]) =>
  Number.isInteger(value)
    ? message(5, text(1, name), whole(3, value), whole(20, 2))
    : message(5, text(1, name), real(2, value), whole(20, 1));

const nodeOf = ({ operator, inputs, output, attributes = {} }) =>
  message(
    1,
    each(inputs, (name) => text(1, name)),
    text(2, output),
    text(4, operator),
    each(Object.entries(attributes), attribute),
  );

const valueInfoOf = (field, { name, shape }) => {
  const sizes = shape.map((size) => message(1, whole(1, size)));
  return message(field, text(1, name), message(2, message(1, whole(1, FLOAT32), message(2, ...sizes))));
};

const constantOf = ({ name, shape, data }) =>
  message(
    5,
    each(shape, (size) => whole(1, size)),
    whole(2, FLOAT32),
    text(8, name),
    bytes(9, Buffer.from(data.buffer, data.byteOffset, data.byteLength)),
  );

/**
 * A model's bytes. Numbers are float32.
 *
 * nodes: { operator, inputs, output, attributes? }; inputs and output: { name, shape }; constants have data besides.
 */
export const modelOf = ({ nodes, inputs, constants = [], output }) =>
  Buffer.concat([
    whole(1, 8),
    message(
      7,
      each(nodes, nodeOf),
      text(2, "graph"),
      each(constants, constantOf),
      each(inputs, (input) => valueInfoOf(11, input)),
      valueInfoOf(12, output),
    ),
    message(8, text(1, ""), whole(2, 17)),
  ]);
