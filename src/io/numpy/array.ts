/** Converts arrays of .npy files to tensors, and back. */
import { DTypeError } from "../../core/errors.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { fromPairs, tensor } from "../../ops/creation/tensor.ts";
import { permute } from "../../ops/view/permute.ts";
import { bytesOf, dtypeFacts, isComplex, realDType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { describes, encodeHeader, type Fail, parseHeader } from "./header.ts";

/** Decodes the bytes of a .npy file to a tensor. @throws {FileFormatError} */
export function decodeArray(bytes: Uint8Array, fail: Fail): Tensor {
  const { dtype, isBigEndian, isFortran, shape, start } = parseHeader(bytes, fail);
  const expected = elementCount(shape) * bytesOf(dtype);
  const found = bytes.byteLength - start;
  if (expected !== found)
    throw fail("sizeDiffers", `expected ${expected} bytes of ${dtype}[${shape.join(", ")}], got ${found}`);
  const elements = new Uint8Array(bytes.subarray(start)); // copied, so that it is aligned
  if (isBigEndian) swap(elements, bytesOf(realDType(dtype)));
  if (dtype === "bool" && elements.some((byte) => byte > 1))
    throw fail("badBool", "expected booleans to be bytes of 0 and 1");
  const values = new dtypeFacts[dtype].array(elements.buffer);
  const storedShape = isFortran ? shape.toReversed() : shape;
  const made: Tensor = isComplex(dtype)
    ? fromPairs(values as Float32Array, storedShape)
    : tensor(values as Float32Array, { dtype: dtype, shape: [...storedShape] });
  return isFortran ? contiguous(permute(made, [...shape.keys()].reverse())) : made;
}

/** Reverses the bytes of each number. */
function swap(bytes: Uint8Array, size: number): void {
  if (size === 1) return;
  for (let at = 0; at < bytes.length; at += size) bytes.subarray(at, at + size).reverse();
}

/** Encodes a tensor as a .npy file, in two parts. @throws {DTypeError} for bfloat16, which NumPy does not have. */
export function encodeArray(operation: string, x: Tensor): [header: Uint8Array, elements: Uint8Array] {
  if (!describes(x.dtype))
    throw new DTypeError(
      operation,
      "notInNumPy",
      `expected a dtype that NumPy supports, got ${x.describe()}; convert with toDType()`,
    );
  const stored = x.dtype === "bool" ? toDType(x, "uint8") : x;
  const { buffer, byteOffset, byteLength } = contiguous(stored).dataSync();
  return [encodeHeader(x.dtype, x.shape), new Uint8Array(buffer, byteOffset, byteLength)];
}
