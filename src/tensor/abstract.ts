/**
 * Abstract tensors: a shape and a dtype without elements. Forward-mode differentiation runs a backward pass with
 * abstract gradients, which records the linear map but computes none of it.
 */
import { OrchardError } from "../core/errors.ts";
import type { DType } from "./dtype.ts";
import type { Memory } from "./memory.ts";
import type { Shape } from "./shape.ts";
import { Storage } from "./storage.ts";
import { Tensor } from "./tensor.ts";

/** @internal Thrown when code reads the elements of an abstract tensor. */
export class AbstractReadError extends OrchardError {
  override readonly name = "AbstractReadError";
}

/** Memory without elements. */
class AbstractMemory implements Memory {
  readonly device = "host";
  readonly byteLength = 0;
  readonly isAbstract = true;

  hostBuffer(): ArrayBuffer {
    throw new AbstractReadError("abstract", "noElements", "an abstract tensor has no elements");
  }
  hostBytes(): Uint8Array {
    return new Uint8Array(this.hostBuffer());
  }
  whenReady(): null {
    return null;
  }
  release(): void {
    // An abstract tensor has no memory to release.
  }
}

/** @internal Returns an abstract tensor. */
export const abstractTensor = <D extends DType>(shape: Shape, dtype: D, strides?: readonly number[]): Tensor<D> =>
  new Tensor(new Storage(new AbstractMemory()), dtype, shape, strides);

/** @internal Makes the contents of a storage abstract, because an abstract value was written into it. */
export function makeAbstract(storage: Storage): void {
  if (!storage.isAbstract) storage.moveTo(new AbstractMemory());
}
