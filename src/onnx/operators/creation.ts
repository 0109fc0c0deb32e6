/** Operators that convert elements or create tensors. */
import { tensor as tensorOf } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import { bytesOf, isFloat } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { Call, Operators, Value } from "../call.ts";
import { castSafely, castTo, type Rounding } from "../cast.ts";
import { NodeProblem } from "../errors.ts";
import { forgotten, keptType } from "../kept_types.ts";
import { isStrings, numberIn, type OnnxStrings, stringsOf, textOf } from "../strings.ts";
import { elementType, elementTypeName, STRING } from "../tensors.ts";
import { int64, listOf } from "./axes.ts";

const roundingOf = ({ attributes }: Call): Rounding => ({
  saturate: attributes.flag("saturate", true),
  mode: attributes.text("round_mode", "up"),
});

/** Casts between numbers and strings, in either direction. */
function cast(x: Value, number: number, call: Call): Value {
  if (number === STRING) return isStrings(x) ? x : written(call.tensor(0));
  return isStrings(x) ? read(x, number) : castTo(call.tensor(0), number, roundingOf(call));
}

const written = (x: Tensor): OnnxStrings =>
  stringsOf(
    Array.from(x.dataSync() as ArrayLike<number | bigint>, (value) => textOf(value, x.dtype === "float64")),
    x.shape,
  );

/** Parses 64-bit integers exactly. */
function read({ strings, shape }: OnnxStrings, number: number): Tensor {
  const type = elementType(number);
  if (!type) throw new NodeProblem(`a cast to ${elementTypeName(number)} is not supported`);
  const isExact = type.dtype === "int64" && strings.every((each) => /^\s*[+-]?\d+\s*$/.test(each));
  const list = isExact
    ? strings.map((each) => BigInt.asIntN(64, BigInt(each.trim().replace(/^\+/, ""))))
    : strings.map(numberIn);
  const wide = tensorOf(list, { shape: [...shape], dtype: isExact ? "int64" : "float64" });
  return castTo(wide, number);
}

function castLike(call: Call): Value {
  const like = call.inputs[1];
  if (isStrings(like)) return cast(call.inputs[0], STRING, call);
  const type = keptType(call.tensor(1));
  if (type !== undefined) return cast(call.inputs[0], type, call);
  return forgotten(castSafely(call.tensor(0), call.tensor(1).dtype));
}

/** Reads the bits of elements as another type of the same size. */
function bitCast(call: Call): Tensor {
  const x = call.tensor(0);
  const number = call.attributes.number("to");
  const type = elementType(number);
  if (type?.wraps && bytesOf(type.dtype) === bytesOf(x.dtype) && !isFloat(x.dtype)) return castTo(x, number);
  if (!type || type.wraps || bytesOf(type.dtype) !== bytesOf(x.dtype) || type.dtype === "bool")
    throw new NodeProblem(`a bit cast of ${x.dtype} to ${elementTypeName(number)} is not supported`);
  if (type.dtype === x.dtype) return x;
  const dense = x.isContiguous ? x : x.contiguous();
  return new Tensor(dense.storage, type.dtype, dense.shape, dense.strides, dense.offset);
}

function eyeLike(call: Call): Tensor {
  const x = call.tensor(0);
  const [rows, columns] = x.shape;
  const k = call.attributes.number("k", 0);
  const type = call.attributes.has("dtype") ? elementType(call.attributes.number("dtype"))?.dtype : x.dtype;
  const [row, column] = [ops.arange(rows), ops.arange(columns)];
  return ops.eq(ops.add(ops.unsqueeze(row, 1), k), ops.unsqueeze(column, 0)).to(type ?? x.dtype);
}

function constantOfShape(call: Call): Tensor {
  const value = call.attributes.tensor("value");
  const shape = call.numbers(0);
  return value
    ? ops.expand(ops.reshape(value, new Array<number>(shape.length).fill(1)), shape).contiguous()
    : ops.zeros(shape);
}

function constant(call: Call): Value {
  const { attributes } = call;
  const value = attributes.value("value");
  if (value) return value;
  if (attributes.has("value_float")) return tensorOf(attributes.number("value_float"), { dtype: "float32" });
  if (attributes.has("value_int")) return int64([attributes.number("value_int")], []);
  const floats = attributes.numbers("value_floats");
  if (floats) return tensorOf([...floats], { dtype: "float32" });
  const ints = attributes.numbers("value_ints");
  if (ints) return int64(ints);
  const strings = attributes.texts("value_strings");
  if (strings) return stringsOf(strings);
  if (attributes.has("value_string")) return stringsOf([attributes.text("value_string")], []);
  throw new NodeProblem("a sparse constant is not supported");
}

function range(call: Call): Tensor {
  const start = call.tensor(0);
  const [from, to, step] = [0, 1, 2].map((at) => call.number(at)) as [number, number, number];
  const count = Math.max(Math.ceil((to - from) / step), 0);
  const values = listOf(count, (at) => from + at * step);
  return start.dtype === "int64" ? int64(values) : tensorOf(values, { dtype: start.dtype, shape: [count] });
}

export const creation: Operators = {
  BitCast: bitCast,
  Cast: (call) => cast(call.inputs[0], call.attributes.number("to"), call),
  CastLike: castLike,
  Constant: constant,
  ConstantOfShape: constantOfShape,
  EyeLike: eyeLike,
  Range: range,
};
