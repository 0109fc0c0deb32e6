import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { metalContext } from "./context.ts";
import { MetalMemory } from "./memory.ts";

/**
 * Memory of the device for the time of a call, for kernels that hand something on to the next one. Dispose of it once
 * they are launched: the allocator does not hand it out again before they are done.
 */
export const scratchTensor = <D extends DType>(shape: Shape, dtype: D): Tensor<D> =>
  new Tensor(new Storage(new MetalMemory(metalContext(), byteLengthOf(shape, dtype))), dtype, shape);
