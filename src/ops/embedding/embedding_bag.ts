import { noGrad } from "../../autograd/modes.ts";
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { choice, flag, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { full } from "../creation/full.ts";
import { checkSomethingToName, type IndexDType } from "../indexing/indices.ts";
import { cat } from "../join/cat.ts";
import { type Bags, bagRows } from "./bags.ts";
import { type BagMode, bagModes } from "./primitive.ts";
import { checkTable, paddingRow, wholeIndices } from "./rows.ts";

/** Options of {@link embeddingBag}. */
export interface EmbeddingBagOptions {
  /**
   * The start of each bag in a vector of indices: ascending, and the first one 0. Indices with two axes have one bag
   * per row and no offsets.
   */
  offsets?: Tensor | undefined;
  /** The reduction of the rows of a bag. Default `"mean"`. */
  mode?: BagMode | undefined;
  /** A factor for the row of each index, of the indices' shape and the weight's dtype; for `"sum"` only. */
  perSampleWeights?: Tensor | undefined;
  /** A row that bags ignore and that gets no gradient. Negative values count from the end. */
  paddingIndex?: number | undefined;
  /** Whether the last offset is the end of the last bag, rather than the start of an additional bag. Default false. */
  includeLastOffset?: boolean | undefined;
}

/**
 * Computes the sum, mean or maximum of the table rows of each bag of indices. An empty bag gives zeros.
 *
 * @param indices integers [bags, length], or [total] with `offsets`
 * @param weight [rows, width], floats
 * @returns [bags, width], in weight's dtype
 *
 * @example
 * embeddingBag(tensor([0n, 1n, 1n]), eye(2), { offsets: tensor([0n, 2n]), mode: "sum" }); // float32 [[1, 1], [0, 1]]
 *
 * @throws {ShapeError} for indices of a different rank, a weight that is not a matrix, or sample weights of a
 * different shape, and `indexOutOfRange` and `offsetsOutOfOrder` (on Metal when a result is read).
 * @throws {DTypeError} for indices or offsets that are not integers, or floats of two dtypes.
 * @throws {ArgumentError} for offsets with indices of two axes, an unknown mode, sample weights without `"sum"`, or a
 * padding index out of range.
 */
export function embeddingBag<D extends DType>(
  indices: Tensor,
  weight: Tensor<D>,
  ...options: Given<EmbeddingBagOptions, ["offsets"]>
): Tensor<D>;
export function embeddingBag(...values: unknown[]): Tensor {
  const { indices, weight, ...options } = embeddingBagParameters(values);
  const { mode, perSampleWeights, includeLastOffset } = options;
  checkTable("embeddingBag", weight);
  const index = wholeIndices("embeddingBag", "indices", indices);
  checkBags(index, options.offsets);
  if (perSampleWeights) checkSampleWeights(perSampleWeights, index, weight, mode);
  if (options.offsets) wholeIndices("embeddingBag", "offsets", options.offsets);
  if (options.offsets && includeLastOffset && options.offsets.size === 0)
    throw new ShapeError("embeddingBag", "noOffset", "expected at least one offset with includeLastOffset, got none");
  checkSomethingToName("embeddingBag", index, weight.shape[0]);
  return underName("embeddingBag", () =>
    tidy(() =>
      bagRows(
        weight,
        perSampleWeights,
        noGrad(() => bagsOf(index, weight, options)),
      ),
    ),
  );
}

const embeddingBagParameters = parameters("embeddingBag", {
  indices: operand(aTensor),
  weight: operand(aTensor),
  offsets: optional(aTensor),
  mode: named({ ...choice(...bagModes.names), error: [ArgumentError, "unknownMode"] }, "mean"),
  perSampleWeights: named(aTensor),
  includeLastOffset: named(flag, false),
  paddingIndex: named(someNumber),
});

function checkBags(index: Tensor, offsets: Tensor | undefined): void {
  if (index.rank !== 1 && index.rank !== 2)
    throw new ShapeError(
      "embeddingBag",
      "wrongRank",
      `expected indices to be [bags, length] or [total], got ${index.describe()}`,
    );
  if (index.rank === 1 && !offsets)
    throw new ArgumentError(
      "embeddingBag",
      "noOffsets",
      `expected offsets, the starts of bags, with indices ${index.describe()}; ` +
        "without offsets, indices need two axes, one bag per row",
    );
  if (index.rank === 2 && offsets)
    throw new ArgumentError(
      "embeddingBag",
      "twoKindsOfBags",
      `expected no offsets with indices ${index.describe()}, which have one bag per row; leave them out or flatten ` +
        "the indices",
    );
  if (offsets && offsets.rank !== 1)
    throw new ShapeError("embeddingBag", "wrongRank", `expected offsets to be a vector, got ${offsets.describe()}`);
}

function checkSampleWeights(samples: Tensor, index: Tensor, weight: Tensor, mode: BagMode): void {
  samples.checkAlive("embeddingBag");
  if (mode !== "sum")
    throw new ArgumentError("embeddingBag", "notASum", `expected mode "sum" with perSampleWeights, got "${mode}"`);
  if (!sameShape(samples.shape, index.shape))
    throw new ShapeError(
      "embeddingBag",
      "shapesDiffer",
      `expected perSampleWeights to have the shape of indices ${index.describe()}, got ${samples.describe()}`,
    );
  if (samples.dtype !== weight.dtype)
    throw new DTypeError(
      "embeddingBag",
      "dtypesDiffer",
      `expected perSampleWeights to have the dtype of weight, ${weight.dtype}, got ${samples.dtype}; ` +
        `convert with toDType(perSampleWeights, "${weight.dtype}")`,
    );
}

/** Describes the bags: all indices in order, and the start of each bag. */
function bagsOf(index: Tensor<IndexDType>, weight: Tensor, options: EmbeddingBagOptions): Bags {
  const { mode = "mean", includeLastOffset = false } = options;
  const padding = paddingRow("embeddingBag", weight, options.paddingIndex) ?? -1;
  const indices = contiguous(index);
  const offsets = options.offsets ? allOffsets(options.offsets, indices, includeLastOffset) : indices;
  const [bags, length] = options.offsets ? [offsets.size - 1, null] : tupleOf(index.shape, 2);
  const attributes = { mode, bags, length, rows: weight.shape[0], padding, hasFactors: false };
  return { operation: "embeddingBag", indices, offsets, attributes };
}

/** Returns the start of each bag and the end of the last one, in the indices' dtype. */
function allOffsets(offsets: Tensor, { size, dtype }: Tensor<IndexDType>, isComplete: boolean): Tensor<IndexDType> {
  const starts = toDType(offsets, dtype);
  return contiguous(isComplete ? starts : cat([starts, full([1], size, { dtype })]));
}
