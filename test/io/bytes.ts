/** Tensors as bytes, for comparisons bit by bit. */

import type { DType } from "../../src/tensor/dtype.ts";
import { dtypeFacts } from "../../src/tensor/dtype.ts";
import { ScriptMemory } from "../../src/tensor/memory.ts";
import { elementCount, type Shape } from "../../src/tensor/shape.ts";
import { Storage } from "../../src/tensor/storage.ts";
import { Tensor } from "../../src/tensor/tensor.ts";

/** Returns the bytes of a dense tensor's elements as stored. */
export function bytesIn({ storage, dtype, offset, shape }: Tensor): Uint8Array {
  const { bytes } = dtypeFacts[dtype];
  const { buffer } = storage.array(dtype);
  return new Uint8Array(buffer, offset * bytes, elementCount(shape) * bytes);
}

/** Creates a tensor from its bytes. */
export function tensorOf(dtype: DType, shape: Shape, bytes: Uint8Array): Tensor {
  const memory = new ScriptMemory(bytes.byteLength);
  memory.hostBytes().set(bytes);
  return new Tensor(new Storage(memory), dtype, [...shape]);
}
