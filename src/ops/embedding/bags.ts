/**
 * Bags of rows on the tape. The bags are linear in the table and in the factors of the indices, so that three operations are each other's
 * gradients, to any order: the bags, the gradient of the table, and that of the factors. Where the largest row is taken, the numbers of those
 * that were say what goes where.
 */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { ge } from "../elementwise/comparison.ts";
import { where } from "../elementwise/where.ts";
import { gather, indexSelect } from "../indexing/gather.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { bagFactorsPrimitive, bagGradientPrimitive, bagPrimitive } from "./bag_primitives.ts";
import type { BagAttributes } from "./modes.ts";

/** Which indices are in which bags. */
export interface Bags {
  /** Who asks, for errors. */
  readonly operation: string;
  /** Dense: [total], or [bags, length]. */
  readonly indices: Tensor<IndexDType>;
  /** Dense [bags + 1]; the indices where each bag has so many. */
  readonly bounds: Tensor<IndexDType>;
  readonly attributes: BagAttributes;
}

/** What the forward found out, for gradients: counts of the bags and, for the largest, the numbers of the indices. */
export type Found = readonly Tensor[];

const wideOf = ({ dtype }: Tensor): "float64" | "float32" => (dtype === "float64" ? "float64" : "float32");

/** The bags of a table, [bags, width]. @param factors of the indices' shape; for sums only */
export function bagRows(table: Tensor, factors: Tensor | undefined, bags: Bags): Tensor {
  const { operation, indices, bounds } = bags;
  const attributes = { ...bags.attributes, hasFactors: factors !== undefined };
  const shape = [attributes.bags, table.shape[1]!];
  const specs = [
    { shape, dtype: table.dtype },
    { shape: [attributes.bags], dtype: wideOf(table) },
    ...(attributes.mode === "max" ? [{ shape, dtype: "int64" } as const] : []),
  ];
  const dense = factors && noGrad(() => contiguous(factors));
  const inputs = [indices, bounds, dense ?? indices, table];
  const [output, ...found] = executeMany(bagPrimitive, inputs, specs, attributes, operation);
  const saved = [indices, bounds, table, ...found, ...(factors ? [factors] : [])];
  record(operation, factors ? [table, factors] : [table], [output!], saved, ([gradient], kept, needs) => {
    const [i, b, t, ...rest] = kept as [Tensor<IndexDType>, Tensor<IndexDType>, Tensor, ...Tensor[]];
    const own = { ...bags, indices: i, bounds: b };
    const [counts, last] = [rest.slice(0, found.length), factors && rest.at(-1)];
    return [
      needs[0] ? tableGradient(gradient!, last, counts, own) : null,
      needs[1] ? factorGradient(t, gradient!, own) : null,
    ];
  });
  return output!;
}

/** The gradient of the table, [rows, width], from that of the bags. */
export function tableGradient(gradient: Tensor, factors: Tensor | undefined, found: Found, bags: Bags): Tensor {
  const { operation, indices, bounds } = bags;
  const attributes = { ...bags.attributes, hasFactors: factors !== undefined };
  const dense = factors && noGrad(() => contiguous(factors));
  const inputs = [indices, bounds, dense ?? indices, gradient, ...found];
  const shape = [attributes.rows, gradient.shape[1]!];
  const output = execute(bagGradientPrimitive, inputs, shape, gradient.dtype, attributes, operation);
  const saved = [indices, bounds, gradient, ...found, ...(factors ? [factors] : [])];
  record("embeddingBagGradient", factors ? [gradient, factors] : [gradient], [output], saved, ([h], kept, needs) => {
    const [i, b, g, ...rest] = kept as [Tensor<IndexDType>, Tensor<IndexDType>, Tensor, ...Tensor[]];
    const own = { ...bags, indices: i, bounds: b };
    const ofGradient = () =>
      attributes.mode === "max" ? rowsAt(h!, i, rest[1] as Tensor<"int64">) : bagRows(h!, factors && rest.at(-1), own);
    return [needs[0] ? ofGradient() : null, needs[1] ? factorGradient(h!, g, own) : null];
  });
  return output;
}

/** The gradient of the factors: the product of each index' row with the gradient of its bag. */
function factorGradient(table: Tensor, gradient: Tensor, bags: Bags): Tensor {
  const { operation, indices, bounds, attributes } = bags;
  const inputs = [indices, bounds, table, gradient];
  const output = execute(bagFactorsPrimitive, inputs, indices.shape, table.dtype, attributes, operation);
  record("embeddingBagFactors", [table, gradient], [output], inputs, ([h], kept, needs) => {
    const [i, b, t, g] = kept as [Tensor<IndexDType>, Tensor<IndexDType>, Tensor, Tensor];
    const own = { ...bags, indices: i, bounds: b };
    return [needs[0] ? tableGradient(g, h!, [indices], own) : null, needs[1] ? bagRows(t, h!, own) : null];
  });
  return output;
}

/** For each column of each bag the element of the row that was the largest; 0 in empty bags. */
function rowsAt(table: Tensor, indices: Tensor<IndexDType>, best: Tensor<"int64">): Tensor {
  const isThere = noGrad(() => ge(best, 0));
  const places = noGrad(() => flatten(where(isThere, best, 0) as Tensor<"int64">) as Tensor<"int64">);
  if (indices.size === 0) return where(isThere, 1, 0) as Tensor; // of nothing but empty bags
  const rows = reshape(indexSelect(flatten(indices) as Tensor<IndexDType>, places, { dim: 0 }), best.shape);
  return where(isThere, gather(table, rows as Tensor<IndexDType>, { dim: 0 }), 0) as Tensor;
}
