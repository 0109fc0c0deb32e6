/** The primitives of bags of rows of a table: `embeddingBag` and its two gradients. */
import { cpuCall } from "../../backend/cpu/call.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/** The reductions of the rows of a bag. */
export const bagModes = enumeration("BagMode", ["sum", "mean", "max"]);
/**
 * The reduction of {@link embeddingBag}: the sum of the rows of a bag, their mean, or the largest element of each
 * column.
 */
export type BagMode = NameOf<typeof bagModes>;

/** The layout of bags of indices. */
export interface BagAttributes {
  readonly mode: BagMode;
  readonly bags: number;
  /** Number of indices in each bag; null if offsets give the bags. */
  readonly length: number | null;
  /** Rows of the table. */
  readonly rows: number;
  /** A row that is ignored, or −1. */
  readonly padding: number;
  /** Whether indices have factors. */
  readonly hasFactors: boolean;
}

/** `total` is the number of indices. `length` is −1 if offsets give the bags. */
const bagFields = { bags: whole, total: whole, length: whole, rows: whole, width: whole, padding: whole };

/** Layout of a matrix: its strides, and the offset of element (0, 0) from the bound address of the operand. */
const matrix = array(whole, 3);

export const bagParameters = struct("Bags", { ...bagFields, table: matrix, gradients: matrix });
export const offsetsParameters = struct("Offsets", { count: whole, total: whole });

/** The fields that every call starts with. */
const bagHead = {
  dtype,
  indexDtype: dtype,
  offsetDtype: dtype,
  mode: oneOf(bagModes),
  ...bagFields,
  hasFactors: flag,
};

/** Strides of a matrix. */
const strides = array(whole, 2);

export const bagCall = cpuCall("embeddingBag", { ...bagHead, starts: array(whole, 4), tableStrides: strides }, [
  "indices",
  "offsets",
  "factors",
  "table",
  "output",
  "counts",
  "best",
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
