/**
 * Maximum and minimum of floats over ranks. MPI does not define the result for NaN; here NaN propagates, as in PyTorch.
 * The bits of floats are mapped to integers of the same order, with NaN beyond all others, and MPI compares those.
 *
 * With b the bits as a signed integer: key(b) = b if b ≥ 0, else b ⊕ 0x7fff…. The function is self-inverse.
 */
import type { Tensor } from "../tensor/tensor.ts";
import type { Reduction } from "./abi.ts";

/** Replaces the floats of a contiguous float32 or float64 tensor with their keys. */
export function toKeys(x: Tensor, reduction: Reduction): void {
  if (x.dtype === "float64") turn64(x, reduction, true);
  else turn32(x, reduction, true);
}

/** Replaces keys with their floats. */
export function fromKeys(x: Tensor, reduction: Reduction): void {
  if (x.dtype === "float64") turn64(x, reduction, false);
  else turn32(x, reduction, false);
}

const [INFINITY_32, NAN_32] = [0x7f800000, 0x7fc00000];

function turn32(x: Tensor, reduction: Reduction, isForth: boolean): void {
  const { buffer, byteOffset } = x.storage.hostBytes();
  const bits = new Int32Array(buffer, byteOffset + x.offset * 4, x.size);
  const nan = reduction === "max" ? 0x7fffffff : -0x80000000;
  for (let at = 0; at < bits.length; at++) {
    const b = bits[at];
    if (isForth && (b & 0x7fffffff) > INFINITY_32) bits[at] = nan;
    else if (!isForth && b === nan) bits[at] = NAN_32;
    else bits[at] = b < 0 ? b ^ 0x7fffffff : b;
  }
}

const [INFINITY_64, NAN_64] = [0x7ff0n << 48n, 0x7ff8n << 48n];
const MASK_64 = 2n ** 63n - 1n;

function turn64(x: Tensor, reduction: Reduction, isForth: boolean): void {
  const { buffer, byteOffset } = x.storage.hostBytes();
  const bits = new BigInt64Array(buffer, byteOffset + x.offset * 8, x.size);
  const nan = reduction === "max" ? MASK_64 : -(2n ** 63n);
  for (let at = 0; at < bits.length; at++) {
    const b = bits[at];
    if (isForth && (b & MASK_64) > INFINITY_64) bits[at] = nan;
    else if (!isForth && b === nan) bits[at] = NAN_64;
    else bits[at] = b < 0n ? b ^ MASK_64 : b;
  }
}
