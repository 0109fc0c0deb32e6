/** The formats of quantised weights: blocks by GGML's names, and groups with a scale and a bias. */
import type { DType } from "../tensor/dtype.ts";
import type { BlockFormat } from "./ggml/block.ts";
import { bf16, f16 } from "./ggml/floats.ts";
import { q4_0, q4_1, q5_0, q5_1, q8_0 } from "./ggml/simple.ts";
import { q2_K, q3_K, q4_K, q5_K, q6_K } from "./ggml/super_blocks.ts";
import { iq4_nl, mxfp4 } from "./ggml/tables.ts";

/** Every format of blocks. */
export const blockFormats = {
  ...{ q4_0, q4_1, q5_0, q5_1, q8_0 },
  ...{ q2_K, q3_K, q4_K, q5_K, q6_K },
  ...{ iq4_nl, mxfp4, f16, bf16 },
} as const satisfies Record<string, BlockFormat>;

/** The name of a format of blocks, as GGML has it. */
export type GgmlFormat = keyof typeof blockFormats;

/** The names of the formats of blocks. */
export const ggmlFormats: readonly GgmlFormat[] = Object.keys(blockFormats) as GgmlFormat[];

/** A format of blocks by its name. */
export const blockFormat = (name: GgmlFormat): BlockFormat => blockFormats[name];

/** The bits of a value in groups. */
export const affineBits = [2, 3, 4, 5, 6, 8] as const;
/** The bits that a value has in the affine format. */
export type AffineBits = (typeof affineBits)[number];

/** The values of a group. */
export const groupSizes = [32, 64, 128] as const;
/** How many values along the last axis share a scale in the affine format. */
export type GroupSize = (typeof groupSizes)[number];

/** The affine format: in each group W = q · scale + bias, which is (q − zero) · scale with bias = −zero · scale. */
export interface AffineFormat {
  readonly bits: AffineBits;
  readonly groupSize: GroupSize;
  /** Whether there are no biases: W = (q − 2^(bits − 1)) · scale. */
  readonly symmetric: boolean;
}

/** The format of a quantised tensor: the name of one of blocks, or bits and groups of an affine one. */
export type QuantizedFormat = GgmlFormat | AffineFormat;

/** The dtypes of scales and biases, and of what is dequantised. */
export const scaleDTypes = ["float32", "float16", "bfloat16"] as const satisfies readonly DType[];
/** A dtype of scales and biases, and of what is dequantised. */
export type ScaleDType = (typeof scaleDTypes)[number];

/** A format in a few letters: `q4_K`, `affine 4 bits, groups of 64`. */
export const formatName = (format: QuantizedFormat): string =>
  typeof format === "string"
    ? format
    : `${format.symmetric ? "symmetric" : "affine"} ${format.bits} bits, groups of ${format.groupSize}`;

/** Of how many adjacent values along the last axis a format is made. */
export const valuesOfBlock = (format: QuantizedFormat): number =>
  typeof format === "string" ? blockFormat(format).values : format.groupSize;
