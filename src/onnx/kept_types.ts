/**
 * Element types of ONNX that no dtype has, such as int4 and float8: tensors hold their values in a wider dtype, and are
 * remembered here with the type, on which later nodes depend.
 */
import * as ops from "../ops/index.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Value } from "./call.ts";

const types = new WeakMap<Tensor, number>();
/** Most models have only types with a dtype. */
let isUsed = false;

/** Remembers the type of a tensor by its number in TensorProto.DataType. Returns the tensor. */
export function kept(x: Tensor, type: number): Tensor {
  isUsed = true;
  types.set(x, type);
  return x;
}

/** Returns the type of a tensor if no dtype has it. */
export const keptType = (x: Tensor | undefined): number | undefined => (isUsed && x ? types.get(x) : undefined);

/** Returns a tensor that has the same elements, of the type that its dtype says. */
export const forgotten = (x: Tensor): Tensor => (keptType(x) === undefined ? x : ops.clone(x));

/** Operators whose results have the elements of their first input. */
const moving: ReadonlySet<string> = new Set([
  ...["Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND"],
  ...["Pad", "Reshape", "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split"],
  ...["Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze"],
]);

/** Operators whose results have the type of their input, and wrap around in it. */
const wrapping: ReadonlySet<string> = new Set([
  ...["Abs", "Add", "BitShift", "BitwiseNot", "Mul", "Neg", "Sub", "Sum"],
]);

/**
 * Remembers the types of results.
 *
 * @param wrap converts a tensor to a type
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
  const type = input instanceof Tensor ? keptType(input) : undefined;
  if (type === undefined) return results;
  const { dtype } = input as Tensor;
  return results.map((value) => {
    if (!(value instanceof Tensor) || value.dtype !== dtype) return value;
    return wrapping.has(operator) ? wrap(value, type) : kept(value, type);
  });
}
