/** Copies the elements of small tensors, and disposes of the tensors. */
import { noGrad } from "../../../../autograd/modes.ts";
import { toDType } from "../../../../ops/copy/cast.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";

/** Returns integers. */
export function elements(read: Tensor): Int32Array {
  const values = new Int32Array(noGrad(() => read.dataSync()) as ArrayLike<number>);
  read.dispose();
  return values;
}

/** Returns floats of any dtype as float32. */
export function floats(read: Tensor): Float32Array {
  const converted = noGrad(() => toDType(read, "float32"));
  const values = new Float32Array(converted.dataSync());
  for (const tensor of new Set([read, converted])) tensor.dispose();
  return values;
}
