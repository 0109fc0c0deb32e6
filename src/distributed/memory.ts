/** Passes tensors to MPI as memory. */
import { noGrad } from "../autograd/modes.ts";
import { empty } from "../backend/allocation.ts";
import { ArgumentError } from "../core/errors.ts";
import { toDType } from "../ops/copy/cast.ts";
import { clone, contiguous } from "../ops/copy/copy.ts";
import { detach } from "../ops/gradient/backward.ts";
import { bytesOf, type DType } from "../tensor/dtype.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { type WireType, wireTypeOf } from "./abi.ts";
import type { Elements } from "./mpi.ts";

/** The maximum of a C int. */
const MOST_ELEMENTS = 2 ** 31 - 1;

/** Returns the memory of a contiguous tensor. Waits for a device that still computes it. */
export function elementsOf(operation: string, x: Tensor, type: WireType = wireTypeOf(operation, x)): Elements {
  const { size, storage, offset, dtype } = x;
  if (size > MOST_ELEMENTS)
    throw new ArgumentError(
      operation,
      "tooLarge",
      `expected at most ${MOST_ELEMENTS} elements in one call, got ${x.describe()}; send it in parts`,
    );
  const { buffer, byteOffset } = storage.hostBytes(); // memory with an ArrayBuffer has a fixed address
  const bytes = new Uint8Array(buffer, byteOffset + offset * bytesOf(dtype), size * bytesOf(dtype));
  return { bytes, type, count: size };
}

/** Returns a contiguous tensor that survives disposal by the caller. Copies only if x is not contiguous. */
export function held(x: Tensor): Tensor {
  const whole = noGrad(() => contiguous(x));
  const view = keep(detach(whole));
  if (whole !== x) whole.dispose();
  return view;
}

/** Returns a copy that a call may change. */
export const ownCopy = (x: Tensor, dtype: DType = x.dtype): Tensor =>
  noGrad(() => keep(x.dtype === dtype ? clone(x) : toDType(x, dtype)));

/** Returns an uninitialized result. */
export const ownEmpty = (shape: Shape, dtype: DType, operation: string): Tensor =>
  keep(empty(shape, dtype, {}, operation));

/** Hands a call's result to the caller, and to the open `tidy` scope. */
export function published(local: Tensor): Tensor {
  const view = detach(local);
  local.dispose();
  return view;
}

/** Whether the elements can be read without waiting. */
export const isReady = ({ storage }: Tensor): boolean => storage.memory.whenReady() === null;
