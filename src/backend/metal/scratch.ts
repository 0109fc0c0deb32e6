import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { metalContext } from "./context.ts";
import { MetalMemory } from "./memory.ts";

/**
 * Allocates temporary device memory for passing data between kernels of a call. Dispose of it once they are launched;
 * the allocator does not reuse it before they are done.
 */
export const scratchTensor = <D extends DType>(shape: Shape, dtype: D): Tensor<D> =>
  new Tensor(new Storage(new MetalMemory(metalContext(), byteLengthOf(shape, dtype))), dtype, shape);
