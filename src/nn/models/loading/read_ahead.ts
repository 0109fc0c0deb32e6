/** Reads pages of mapped weights into memory while the model is still being built. */
import { cpuCall } from "../../../backend/cpu/call.ts";
import { whole } from "../../../backend/fields.ts";
import { getBackend } from "../../../backend/policy.ts";
import { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import { bytesOf } from "../../../tensor/dtype.ts";
import type { Tensor } from "../../../tensor/tensor.ts";

/** The cpu backend's function that reads pages in advance. */
export const readAheadCall = cpuCall("readAhead", { offset: whole, bytes: whole }, ["x"]);

/**
 * Starts reading and returns at once; a thread of the cpu backend reads. Other backends copy weights anyway, so it does
 * nothing there.
 */
export function readAhead(weight: Tensor | QuantizedTensor): void {
  if (getBackend() !== "cpu") return;
  const x = QuantizedTensor.isQuantized(weight) ? weight.parts.packed : weight;
  const size = bytesOf(x.dtype);
  if (x.isContiguous) readAheadCall("loadModel", { offset: x.offset * size, bytes: x.size * size }, [x]);
}
