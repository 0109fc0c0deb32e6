import { named } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { arange } from "../creation/arange.ts";
import { add, div, maximum, mul, sub } from "../elementwise/binary.ts";
import { eq, ge, logicalAnd, ne } from "../elementwise/comparison.ts";
import { where } from "../elementwise/ternary.ts";
import { checkSomethingToName, type IndexDType } from "../indexing/indices.ts";
import { matmul } from "../matmul/matmul.ts";
import { amax } from "../reduction/extrema.ts";
import { sum } from "../reduction/sum.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { slice } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { embedding } from "./embedding.ts";
import { checkTable, paddingRow, wholeIndices } from "./rows.ts";

/** What becomes of the rows of a bag. */
export type BagMode = "sum" | "mean" | "max";

/** Options of {@link embeddingBag}. */
export interface EmbeddingBagOptions {
  /** Where each bag begins among indices of one axis, the first at 0, ascending. Indices of two axes have a bag a row, and no offsets. */
  offsets?: Tensor | undefined;
  /** Default `"mean"`. */
  mode?: BagMode | undefined;
  /** A factor of each index' row, of the indices' shape and the weight's dtype; for `"sum"` only. */
  perSampleWeights?: Tensor | undefined;
  /** A row that counts in no bag and gets no gradient, a negative one counted from the end. */
  paddingIndex?: number | undefined;
  /** The offsets end with one that begins no bag: the end of the last. Default false. */
  includeLastOffset?: boolean | undefined;
}

const modes: readonly BagMode[] = ["sum", "mean", "max"];

/**
 * The sum, mean or largest of the rows of a table that each bag of indices names. An empty bag gives zeros.
 *
 * @param indices integers [bags, length], or [total] with `offsets`
 * @param weight [rows, width], floats
 * @returns [bags, width], in weight's dtype
 *
 * @example
 * embeddingBag(tensor([0n, 1n, 1n]), tensor([[1, 2], [3, 4]]), { offsets: tensor([0n, 2n]), mode: "sum" }); // float32 [[4, 6], [3, 4]]
 *
 * @throws {ShapeError} for indices of another rank, a weight that is no matrix, weights of samples of another shape, and
 * `indexOutOfRange`. @throws {DTypeError} for indices or offsets that are no integers, or floats of two dtypes. @throws {ArgumentError} for
 * offsets beside bags in rows, an unknown mode, weights of samples without `"sum"`, or a padding index that is no row.
 */
export function embeddingBag<D extends DType>(
  indices: Tensor,
  weight: Tensor<D>,
  options: EmbeddingBagOptions = {},
): Tensor<D> {
  const { mode = "mean", perSampleWeights, includeLastOffset = false } = options;
  checkTable("embeddingBag", weight);
  const index = wholeIndices("embeddingBag", "indices", indices);
  checkMode(mode);
  checkBags(index, options.offsets);
  if (perSampleWeights) checkSampleWeights(perSampleWeights, index, weight, mode);
  const offsets = options.offsets && wholeIndices("embeddingBag", "offsets", options.offsets);
  if (offsets && includeLastOffset && offsets.size === 0)
    throw new ShapeError("embeddingBag", "noOffset", "no offset came, with includeLastOffset at least one is wanted");
  const padding = paddingRow("embeddingBag", weight, options.paddingIndex);
  checkSomethingToName("embeddingBag", index, weight.shape[0]!);
  return named("embeddingBag", () =>
    tidy(() => bagsOf(index, weight, { mode, offsets, perSampleWeights, padding, includeLastOffset })),
  );
}

function checkMode(mode: BagMode): void {
  if (modes.includes(mode)) return;
  throw new ArgumentError("embeddingBag", "unknownMode", `mode ${String(mode)} came, "sum", "mean" or "max" is wanted`);
}

function checkBags(index: Tensor, offsets: Tensor | undefined): void {
  if (index.rank !== 1 && index.rank !== 2)
    throw new ShapeError(
      "embeddingBag",
      "wrongRank",
      `indices ${index.describe()} came, [bags, length] or [total] is wanted`,
    );
  if (index.rank === 1 && !offsets)
    throw new ArgumentError(
      "embeddingBag",
      "noOffsets",
      `indices ${index.describe()} came without offsets, which say where bags begin; indices of two axes have a bag a row`,
    );
  if (index.rank === 2 && offsets)
    throw new ArgumentError(
      "embeddingBag",
      "twoKindsOfBags",
      `indices ${index.describe()} came with offsets; they have a bag a row, leave the offsets out or flatten the indices`,
    );
  if (offsets && offsets.rank !== 1)
    throw new ShapeError("embeddingBag", "wrongRank", `offsets ${offsets.describe()} came, a vector is wanted`);
}

function checkSampleWeights(samples: Tensor, index: Tensor, weight: Tensor, mode: BagMode): void {
  samples.checkAlive("embeddingBag");
  if (mode !== "sum")
    throw new ArgumentError(
      "embeddingBag",
      "notASum",
      `perSampleWeights came for mode "${mode}", they are for "sum" only`,
    );
  if (!sameShape(samples.shape, index.shape))
    throw new ShapeError(
      "embeddingBag",
      "shapesDiffer",
      `perSampleWeights ${samples.describe()} came for indices ${index.describe()}; the same shape is wanted`,
    );
  if (samples.dtype !== weight.dtype)
    throw new DTypeError(
      "embeddingBag",
      "dtypesDiffer",
      `perSampleWeights are ${samples.dtype}, weight is ${weight.dtype}; toDType(perSampleWeights, "${weight.dtype}") converts`,
    );
}

interface Bags {
  readonly mode: BagMode;
  readonly offsets: Tensor<IndexDType> | undefined;
  readonly perSampleWeights: Tensor | undefined;
  readonly padding: number | undefined;
  readonly includeLastOffset: boolean;
}

function bagsOf<D extends DType>(index: Tensor<IndexDType>, weight: Tensor<D>, bags: Bags): Tensor<D> {
  const { mode, padding, perSampleWeights } = bags;
  const wide = weight.dtype === "float64" ? "float64" : "float32";
  const flat = reshape(index, [index.size]);
  const rows = toDType(embedding(flat, weight, padding === undefined ? {} : { paddingIndex: padding }), wide);
  const member = membership(index, bags);
  const counted = padding === undefined ? member : logicalAnd(member, ne(flat, padding));
  if (mode === "max") return toDType(largest(rows, counted), weight.dtype);
  const factors = toDType(counted, wide);
  const samples = perSampleWeights && toDType(reshape(perSampleWeights, [index.size]), wide);
  const sums = matmul(samples ? mul(factors, samples) : factors, rows);
  const counts = maximum(sum(factors, { dim: 1, keepdim: true }), 1);
  return toDType(mode === "mean" ? div(sums, counts) : sums, weight.dtype);
}

/** [bags, total]: which indices are whose. */
function membership(index: Tensor, { offsets, includeLastOffset }: Bags): Tensor<"bool"> {
  const places = arange(index.size, { dtype: "int64" });
  if (!offsets) {
    const [bags, length] = index.shape as [number, number];
    const starts = unsqueeze(mul(arange(bags, { dtype: "int64" }), length), 1);
    return logicalAnd(ge(places, starts), ge(add(starts, length - 1), places));
  }
  const starts = includeLastOffset ? slice(offsets, { end: -1 }) : offsets;
  const begun = toDType(ge(places, unsqueeze(offsets, 1)), "int64");
  const bag = sub(sum(begun, { dim: 0 }), 1);
  return eq(bag, unsqueeze(arange(starts.size, { dtype: "int64" }), 1));
}

function largest(rows: Tensor, counted: Tensor<"bool">): Tensor {
  const [bags, total] = counted.shape as [number, number];
  if (total === 0)
    return expand(reshape(toDType(counted, rows.dtype), [bags, 0, 1]).sum({ dim: 1 }), [bags, rows.shape[1]!]);
  const best = amax(where(unsqueeze(counted, 2), rows, -Infinity), { dim: 1 });
  return where(ge(sum(toDType(counted, "int64"), { dim: 1, keepdim: true }), 1), best, 0) as Tensor;
}
