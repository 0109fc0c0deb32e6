/**
 * Tracks ONNX element types without a dtype, such as int4 and float8. Tensors hold their values in a wider dtype. Later
 * nodes depend on the type, so it is recorded here for each tensor.
 */
import * as ops from "../ops/index.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Value } from "./call.ts";

const types = new WeakMap<Tensor, number>();
/** Whether any type was recorded. Most models have only types with a dtype and skip the look-ups. */
let isUsed = false;

/** Records a tensor's type, a number in TensorProto.DataType. Returns the tensor. */
export function kept(x: Tensor, type: number): Tensor {
  isUsed = true;
  types.set(x, type);
  return x;
}

/** Returns the recorded type of a tensor; undefined if its dtype is its type. */
export const keptType = (x: Tensor | undefined): number | undefined => (isUsed && x ? types.get(x) : undefined);

/** Returns a tensor with the same elements and without a recorded type. */
export const forgotten = (x: Tensor): Tensor => (keptType(x) === undefined ? x : ops.clone(x));

/** Operators that move elements of their first input. */
const moving: ReadonlySet<string> = new Set([
  "Compress",
  "Concat",
  "DepthToSpace",
  "Expand",
  "Flatten",
  "Gather",
  "GatherElements",
  "GatherND",
  "Pad",
  "Reshape",
  "ReverseSequence",
  "ScatterElements",
  "ScatterND",
  "Slice",
  "SpaceToDepth",
  "Split",
  "Squeeze",
  "Tile",
  "Transpose",
  "Trilu",
  "Unsqueeze",
]);

/** Operators whose results have the input's type, and wrap on overflow. */
const wrapping: ReadonlySet<string> = new Set(["Abs", "Add", "BitShift", "BitwiseNot", "Mul", "Neg", "Sub", "Sum"]);

/**
 * Records the types of an operator's results.
 *
 * @param wrap wraps a tensor's values to a type
 */
export function keepTypes(
  operator: string,
  inputs: readonly Value[],
  results: readonly Value[],
  wrap: (x: Tensor, type: number) => Tensor,
): readonly Value[] {
  const isMoved = moving.has(operator) || operator === "Where";
  if (!isUsed || !(isMoved || wrapping.has(operator))) return results;
  const input = inputs[operator === "Where" ? 1 : 0];
  if (!(input instanceof Tensor)) return results;
  const type = keptType(input);
  if (type === undefined) return results;
  const { dtype } = input;
  return results.map((value) => {
    if (!(value instanceof Tensor) || value.dtype !== dtype) return value;
    return wrapping.has(operator) ? wrap(value, type) : kept(value, type);
  });
}
