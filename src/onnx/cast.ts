/** Casts tensors to ONNX's element types. */
import * as ops from "../ops/index.ts";
import { type DType, isFloat } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { NodeProblem } from "./errors.ts";
import { forgotten, kept } from "./kept_types.ts";
import { powerOfTwo, roundedTo, smallFloats } from "./small_floats.ts";
import { elementType, elementTypeName, isKept } from "./tensors.ts";

/** Rounding to floats of up to 8 bits. */
export interface Rounding {
  readonly saturate: boolean;
  /** For E8M0 only: `up`, `down` or `nearest`. */
  readonly mode: string;
}

/** Casts to an ONNX element type. If no dtype matches, wraps or rounds the values and stores them in a wider dtype. */
export function castTo(x: Tensor, number: number, rounding: Rounding = { saturate: true, mode: "up" }): Tensor {
  const type = elementType(number);
  if (!type) throw new NodeProblem(`a cast to ${elementTypeName(number)} is not supported`);
  if (!isKept(type)) return forgotten(castSafely(x, type.dtype));
  return kept(type.values ? roundTo(x, type.name, rounding) : wrapTo(x, type), number);
}

function roundTo(x: Tensor, name: string, { saturate, mode }: Rounding): Tensor {
  const format = smallFloats[name];
  return format ? roundedTo(format, x, saturate) : powerOfTwo(x, mode, saturate);
}

function wrapTo(x: Tensor, type: NonNullable<ReturnType<typeof elementType>>): Tensor {
  const { bits, isSigned } = type.wraps!;
  const whole = castSafely(x, "int32");
  const low = ops.bitwiseAnd(whole, 2 ** bits - 1);
  const wrapped = isSigned ? ops.sub(ops.bitwiseXor(low, 2 ** (bits - 1)), 2 ** (bits - 1)) : low;
  return castSafely(wrapped, type.dtype);
}

/**
 * Narrow integers, each with a wider type: a float out of range is first cast to the wider type, so that it wraps
 * around as in onnxruntime and NumPy.
 */
const wider: Partial<Record<DType, DType>> = { uint8: "int32", int8: "int32", uint32: "int64" };

export function castSafely(x: Tensor, dtype: DType): Tensor {
  if (x.dtype === dtype) return x;
  const first = isFloat(x.dtype) ? wider[dtype] : undefined;
  return (first === undefined ? x : x.to(first)).to(dtype);
}
