/** MLX's layout of mxfp4: consecutive 4-bit levels in 32-bit words, and a separate tensor of block exponents. */

import { noGrad } from "../autograd/modes.ts";
import { lastElement } from "../core/collections.ts";
import { DTypeError, ShapeError } from "../core/errors.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { sameShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { blockFormat } from "./formats.ts";
import type { PartsProblem } from "./parts.ts";
import type { QuantizedParts } from "./quantized_tensor.ts";

const { values, bytes } = blockFormat("mxfp4");
const WORDS = values / 8;
const HALF = values / 2;

/**
 * Checks parts: `packed` uint32 [..., columns / 8], `scales` uint8 [..., columns / 32]; undefined if they are valid.
 */
export function problemOfWords({ packed, scales, biases }: QuantizedParts): PartsProblem | undefined {
  const [Class, code] = [ShapeError, "shapesDiffer"];
  if (packed.dtype !== "uint32" || scales?.dtype !== "uint8" || biases !== undefined) {
    const got = `${packed.describe()}, ${scales?.describe() ?? "none"}${biases ? " and biases" : ""}`;
    return {
      Class: DTypeError,
      code: "wrongDType",
      message: `expected only uint32 words and uint8 scales, got ${got}`,
    };
  }
  const blocks = lastElement(packed.shape) / WORDS;
  if (sameShape(scales.shape, [...packed.shape.slice(0, -1), blocks])) return undefined;
  return {
    Class,
    code,
    message: `expected one scale per ${WORDS} words, got ${packed.describe()}, ${scales.describe()}`,
  };
}

/** Converts to GGML's blocks, uint8 [..., bytes of a row]: an exponent, then levels i and i + 16 in a byte. */
export function blocksOfWords(packed: Tensor, scales: Tensor): Tensor {
  const [words, exponents] = noGrad(() => [
    Uint32Array.from(packed.dataSync() as ArrayLike<number>),
    Uint8Array.from(scales.dataSync() as ArrayLike<number>),
  ]);
  const pairs = new Uint8Array(words.buffer);
  const levelAt = (at: number) => (pairs[at >> 1] >> (4 * (at & 1))) & 15;
  const blocks = new Uint8Array(exponents.length * bytes);
  for (const [block, exponent] of exponents.entries()) {
    const [from, to] = [block * values, block * bytes];
    blocks[to] = exponent;
    for (let at = 0; at < HALF; at++) blocks[to + 1 + at] = levelAt(from + at) | (levelAt(from + at + HALF) << 4);
  }
  const shape = [...scales.shape.slice(0, -1), lastElement(scales.shape) * bytes];
  return tensor(blocks, { shape, dtype: "uint8" });
}
