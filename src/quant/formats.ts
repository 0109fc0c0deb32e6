/** The formats of quantized weights: GGML's blocks, and affine groups with a scale and a bias. */
import { keysOf } from "../core/records.ts";
import type { DType } from "../tensor/dtype.ts";
import type { BlockFormat } from "./ggml/block.ts";
import { bf16, f16 } from "./ggml/floats.ts";
import { q4_0, q4_1, q5_0, q5_1, q8_0 } from "./ggml/simple.ts";
import { q2_K, q3_K, q4_K, q5_K, q6_K } from "./ggml/super_blocks.ts";
import { iq4_nl, mxfp4 } from "./ggml/tables.ts";

/** All block formats. */
export const blockFormats = {
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_K,
  q3_K,
  q4_K,
  q5_K,
  q6_K,
  iq4_nl,
  mxfp4,
  f16,
  bf16,
} as const satisfies Record<string, BlockFormat>;

/** The name of a block format, as in GGML. */
export type GgmlFormat = keyof typeof blockFormats;

/** The names of the block formats. */
export const ggmlFormats: readonly GgmlFormat[] = keysOf(blockFormats);

/** Returns a block format by name. */
export const blockFormat = (name: GgmlFormat): BlockFormat => blockFormats[name];

/** The supported bits per value in the affine format. */
export const affineBits = [2, 3, 4, 5, 6, 8] as const;
/** Bits per value in the affine format. */
export type AffineBits = (typeof affineBits)[number];

/** The supported group sizes. */
export const groupSizes = [32, 64, 128] as const;
/** The number of values along the last axis that share a scale in the affine format. */
export type GroupSize = (typeof groupSizes)[number];

/** The affine format: in each group W = q · scale + bias, which is (q − zero) · scale with bias = −zero · scale. */
export interface AffineFormat {
  readonly bits: AffineBits;
  readonly groupSize: GroupSize;
  /** Whether there are no biases: W = (q − 2^(bits − 1)) · scale. */
  readonly symmetric: boolean;
}

/** The format of a quantized tensor: the name of a block format, or bits and group size of the affine format. */
export type QuantizedFormat = GgmlFormat | AffineFormat;

/** The dtypes of scales and biases, and of dequantized tensors. */
export const scaleDTypes = ["float32", "float16", "bfloat16"] as const satisfies readonly DType[];
/** A dtype of scales and biases, or of a dequantized tensor. */
export type ScaleDType = (typeof scaleDTypes)[number];

/** Returns a short name of a format: `q4_K`, `affine 4 bits, groups of 64`. */
export const formatName = (format: QuantizedFormat): string =>
  typeof format === "string"
    ? format
    : `${format.symmetric ? "symmetric" : "affine"} ${format.bits} bits, groups of ${format.groupSize}`;

/** Returns the number of adjacent values along the last axis in a block or group. */
export const valuesOfBlock = (format: QuantizedFormat): number =>
  typeof format === "string" ? blockFormat(format).values : format.groupSize;
