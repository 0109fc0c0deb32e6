/** The primitives of bags of rows of a table: `embeddingBag` and its two gradients. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/** What becomes of the rows of a bag. */
export const bagModes = enumeration("BagMode", ["sum", "mean", "max"]);
/** What {@link embeddingBag} makes of the rows of a bag: their sum, their mean, or the largest of each column. */
export type BagMode = NameOf<typeof bagModes>;

/** What bags of indices are, and how inputs name them. */
export interface BagAttributes {
  readonly mode: BagMode;
  readonly bags: number;
  /** Indices of each bag; null where offsets say where each begins and the last one ends. */
  readonly length: number | null;
  /** Rows of the table. */
  readonly rows: number;
  /** A row that counts for nothing, or −1. */
  readonly padding: number;
  /** Whether indices have factors. */
  readonly hasFactors: boolean;
}

/** `total` is the number of indices, `length` −1 where offsets say where bags begin. */
const bagFields = { bags: whole, total: whole, length: whole, rows: whole, width: whole, padding: whole };

/** Of a matrix: its strides, and its element (0, 0) from where the operand is bound. */
const matrix = array(whole, 3);

export const bagParameters = struct("Bags", "embedding/bags.metal", { ...bagFields, table: matrix, gradients: matrix });
export const offsetsParameters = struct("Offsets", "embedding/bags.metal", { count: whole, total: whole });

/** What every call begins with. */
const bagHead = {
  ...{ dtype, indexDtype: dtype, offsetDtype: dtype, mode: oneOf(bagModes) },
  ...{ ...bagFields, hasFactors: flag },
};

/** Strides of a matrix. */
const strides = array(whole, 2);

export const bagCall = cpuCall("embeddingBag", { ...bagHead, starts: array(whole, 4), tableStrides: strides }, [
  ...["indices", "offsets", "factors", "table"],
  ...["output", "counts", "best"],
]);
export const bagGradientCall = cpuCall(
  "embeddingBagGradient",
  { ...bagHead, starts: array(whole, 6), gradientStrides: strides },
  ["indices", "offsets", "factors", "gradients", "counts", "best", "output"],
);
export const bagFactorsCall = cpuCall(
  "embeddingBagFactors",
  { ...bagHead, starts: array(whole, 4), tableStrides: strides, gradientStrides: strides },
  ["indices", "offsets", "table", "gradients", "output"],
);
