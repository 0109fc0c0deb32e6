/** x rounded to 8 bits, as fast products do, and the oracle of such products. */
import { dequantize, fromArray, quantizedFromParts, type Tensor, zeros } from "../../src/index.ts";
import { blockFormat } from "../../src/quant/formats.ts";
import type { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import { bytesIn } from "../io/bytes.ts";
import { blocksOf, on } from "./fixtures.ts";
import { formats, numbers, worstRatio } from "./products.ts";

/** The formats whose weights are integer levels. */
export const withLevels = formats.filter((format) => format !== "f16" && format !== "bf16");

/**
 * The rounded x, in float64. Each group of 32 values has a scale max|x| / 127 in float32, and levels from −127 to 127.
 */
export function rounded(x: Tensor): Tensor<"float64"> {
  const [rows, columns] = x.shape;
  const values = numbers(x);
  for (let row = 0; row < rows; row++)
    for (let first = 0; first < columns; first += 32) {
      const part = values.subarray(row * columns + first, row * columns + Math.min(first + 32, columns));
      const scale = Math.fround(Math.max(...part.map(Math.abs)) / 127);
      const inverse = Math.fround(1 / scale);
      for (const [at, value] of part.entries()) part[at] = scale < 2 ** -126 ? 0 : scale * nearest(value * inverse);
    }
  return fromArray(values, [rows, columns]) as Tensor<"float64">;
}

/** For a product in float32: the nearest whole number, ties to even. */
function nearest(product: number): number {
  const value = Math.fround(product);
  const below = Math.floor(value);
  const over = value - below;
  return over > 0.5 || (over === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/** For formats with a minimum: the bytes of a block that are not levels. */
const heads: Readonly<Record<string, (at: number) => boolean>> = {
  q4_1: (at) => at < 4,
  q5_1: (at) => at < 4,
  q4_K: (at) => at < 16,
  q5_K: (at) => at < 16,
  q2_K: (at) => at < 16 || at >= 80,
};

/** The minimum of each weight: its value where the level is 0. */
function lowsOf(w: QuantizedTensor): Float64Array | undefined {
  const { format, parts } = w;
  const valuesOf = (own: QuantizedTensor) => numbers(on("reference", () => dequantize(own, { dtype: "float32" })));
  if (typeof format === "object")
    return format.symmetric
      ? undefined
      : valuesOf(quantizedFromParts(format, { ...parts, packed: zeros(parts.packed.shape, { dtype: "uint32" }) }));
  const head = heads[format];
  if (head === undefined) return undefined;
  const { bytes } = blockFormat(format);
  const own = bytesIn(parts.packed).map((byte, at) => (head(at % bytes) ? byte : 0));
  return valuesOf(blocksOf(format, w.shape[0], own));
}

/** The largest ratio of an error of a fast product to its bound. */
export const ratioOf = (got: Tensor, x: Tensor, w: QuantizedTensor) => worstRatio(got, rounded(x), w, false, lowsOf(w));
