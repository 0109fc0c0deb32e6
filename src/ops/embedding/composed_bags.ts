/** Bags composed of other operations, which `vmap` runs once for all examples. */
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { arange } from "../creation/arange.ts";
import { zeros } from "../creation/full.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { eq, ge, lt, ne } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { maximum } from "../elementwise/extrema.ts";
import { logicalAnd } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { indexSelect } from "../indexing/gather.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { indexAdd } from "../indexing/scatter_add.ts";
import { max } from "../reduction/extrema.ts";
import { sum } from "../reduction/sum.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import type { BagAttributes, BagMode } from "./primitive.ts";

/** The bags of `bags.ts`. */
interface Bags {
  readonly indices: Tensor<IndexDType>;
  readonly offsets: Tensor<IndexDType>;
  readonly attributes: BagAttributes;
}

/**
 * Computes the bags of a table, [bags, width], from the rows of all indices. A table of members, [bags, indices], says
 * which indices a bag has, so work and memory grow with bags · indices if offsets give the bags.
 *
 * @param factors of the indices' shape; for sums only
 */
export function composedBags(table: Tensor, factors: Tensor | undefined, bags: Bags): Tensor {
  const { indices, attributes } = bags;
  const [count, width] = [attributes.bags, table.shape[1]];
  const columns = attributes.length ?? indices.size;
  const rowsOfBags = attributes.length === null ? 1 : count;
  const rows = toDType(indexSelect(table, flatten(indices), { dim: 0 }), accumulationDType(table.dtype));
  const members = unsqueeze(membersOf(bags), 2);
  const own = reshape(rows, [rowsOfBags, columns, width]);
  const values = factors ? mul(own, reshape(toDType(factors, rows.dtype), [rowsOfBags, columns, 1])) : own;
  return toDType(reduced(values, members, attributes.mode), table.dtype);
}

function reduced(values: Tensor, members: Tensor, mode: BagMode): Tensor {
  const sizes = sum(toDType(members, values.dtype), { dim: 1 });
  if (mode === "max" && values.shape[1] > 0) {
    const largest = max(where(members, values, Number.NEGATIVE_INFINITY), { dim: 1 }).values;
    return where(ge(sizes, 1), largest, 0);
  }
  const total = sum(where(members, values, 0), { dim: 1 });
  return mode === "mean" ? div(total, maximum(sizes, 1)) : total;
}

/** Computes the gradient of the table, [rows, width], from that of the bags. @param found as in `bags.ts` */
export function composedTableGradient(
  gradient: Tensor,
  factors: Tensor | undefined,
  [counts, best]: readonly Tensor[],
  bags: Bags,
): Tensor {
  const { indices, attributes } = bags;
  const dtype = accumulationDType(gradient.dtype);
  const wide = toDType(gradient, dtype);
  const given = attributes.mode === "mean" ? div(wide, unsqueeze(maximum(toDType(counts, dtype), 1), 1)) : wide;
  const spread = ofIndices(given, bags, attributes.mode === "max" ? best : undefined);
  const scaled = factors ? mul(spread, unsqueeze(toDType(flatten(factors), dtype), 1)) : spread;
  const sums = indexAdd(zeros([attributes.rows, gradient.shape[1]], { dtype }), 0, flatten(indices), scaled);
  return toDType(sums, gradient.dtype);
}

/** Computes the gradient of the factors: the dot product of each index's row with the gradient of its bag. */
export function composedFactorGradient(table: Tensor, gradient: Tensor, bags: Bags): Tensor {
  const dtype = accumulationDType(table.dtype);
  const rows = toDType(indexSelect(table, flatten(bags.indices), { dim: 0 }), dtype);
  const products = sum(mul(rows, ofIndices(toDType(gradient, dtype), bags)), { dim: 1 });
  return toDType(reshape(products, bags.indices.shape), table.dtype);
}

/**
 * Returns the gradient of each index's bag, [indices, width]; 0 for padding.
 *
 * @param best the position of the only index that has a gradient, for each element of the bags
 */
function ofIndices(gradient: Tensor, bags: Bags, best?: Tensor): Tensor {
  const { indices, attributes } = bags;
  const columns = attributes.length ?? indices.size;
  const rows = attributes.length === null ? 1 : attributes.bags;
  const places = arange(rows * columns, { dtype: "int64" });
  const isMember = unsqueeze(membersOf(bags), 2);
  const isBest = best && eq(unsqueeze(best, 1), reshape(places, [rows, columns, 1]));
  const values = where(isBest ? logicalAnd(isMember, isBest) : isMember, unsqueeze(gradient, 1), 0);
  return attributes.length === null ? sum(values, { dim: 0 }) : reshape(values, [indices.size, gradient.shape[1]]);
}

/** Tests which indices are in a bag and are not padding: [bags, length], or [bags, total]. */
function membersOf({ indices, offsets, attributes: { bags, length, padding } }: Bags): Tensor {
  const isRow = ne(indices, padding);
  if (length !== null) return reshape(isRow, [bags, length]);
  const places = arange(indices.size, { dtype: offsets.dtype });
  const [starts, ends] = [0, 1].map((first) => unsqueeze(narrow(offsets, 0, first, bags), 1)) as [Tensor, Tensor];
  return logicalAnd(logicalAnd(ge(places, starts), lt(places, ends)), isRow);
}
