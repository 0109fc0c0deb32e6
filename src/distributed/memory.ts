/** Tensors as memory that MPI reads and writes. */
import { noGrad } from "../autograd/modes.ts";
import { empty } from "../backend/dispatch.ts";
import { ArgumentError } from "../core/errors.ts";
import { toDType } from "../ops/copy/cast.ts";
import { clone, contiguous } from "../ops/copy/copy.ts";
import { detach } from "../ops/gradient/backward.ts";
import { bytesOf, type DType } from "../tensor/dtype.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { type WireType, wireTypes } from "./abi.ts";
import type { Elements } from "./mpi.ts";

/** What an int counts. */
const MOST_ELEMENTS = 2 ** 31 - 1;

/** The elements of a contiguous tensor, as they lie; waits for a device that still computes them. */
export function elementsOf(operation: string, x: Tensor, type: WireType = wireTypes[x.dtype]): Elements {
  const { size, storage, offset, dtype } = x;
  if (size > MOST_ELEMENTS)
    throw new ArgumentError(
      operation,
      "tooLarge",
      `expected at most ${MOST_ELEMENTS} elements in one call, got ${x.describe()}; send it in parts`,
    );
  const { buffer, byteOffset } = storage.hostBytes(); // memory with a buffer has an address that stays
  const bytes = new Uint8Array(buffer as ArrayBuffer, byteOffset + offset * bytesOf(dtype), size * bytesOf(dtype));
  return { bytes, type, count: size };
}

/** The elements as they are now, of a tensor that the caller may dispose of: a copy only where there are gaps. */
export function held(x: Tensor): Tensor {
  const whole = noGrad(() => contiguous(x));
  const view = keep(detach(whole));
  if (whole !== x) whole.dispose();
  return view;
}

/** A copy that a call changes. */
export const ownCopy = (x: Tensor, dtype: DType = x.dtype): Tensor =>
  noGrad(() => keep(x.dtype === dtype ? clone(x) : toDType(x, dtype)));

/** A result to be filled. */
export const ownEmpty = (shape: Shape, dtype: DType, operation: string): Tensor =>
  keep(empty(shape, dtype, {}, operation));

/** What a call made, as the caller's: the scope of `tidy` that is open now has it. */
export function published(own: Tensor): Tensor {
  const view = detach(own);
  own.dispose();
  return view;
}

/** Whether the elements can be read without a wait. */
export const isReady = ({ storage }: Tensor): boolean => storage.memory.whenReady() === null;
