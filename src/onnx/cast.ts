/** Casts to the element types of ONNX. */
import * as ops from "../ops/index.ts";
import type { DType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { NodeProblem } from "./errors.ts";
import { forgotten, kept } from "./kept_types.ts";
import { powerOfTwo, roundedTo, smallFloats } from "./small_floats.ts";
import { elementType, elementTypeName, isKept } from "./tensors.ts";

/** How floats of 8 and fewer bits round. */
export interface Rounding {
  readonly saturate: boolean;
  /** Of E8M0: `up`, `down` or `nearest`. */
  readonly mode: string;
}

/** Casts to an element type of ONNX; a type without a dtype wraps or rounds into one that holds its values. */
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

export const castSafely = (x: Tensor, dtype: DType): Tensor => (x.dtype === dtype ? x : x.to(dtype));
