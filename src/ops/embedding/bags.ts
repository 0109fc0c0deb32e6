/**
 * Bags of rows on the tape. The bags are linear in the table and in the factors of the indices, so that three
 * operations are each other's gradients, to any order: the bags, the gradient of the table, and that of the factors.
 * Where the largest row is taken, the numbers of those that were say what goes where.
 */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { ge } from "../elementwise/comparison.ts";
import { where } from "../elementwise/where.ts";
import { gather, indexSelect } from "../indexing/gather.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { bagCpu, bagFactorsCpu, bagGradientCpu } from "./bag.cpu.ts";
import { bagFactorsMetal, bagGradientMetal, bagMetal } from "./bag.metal.ts";
import { bagFactorsReference, bagGradientReference, bagReference } from "./bag.reference.ts";
import type { BagAttributes } from "./primitive.ts";

// Inputs of all three: indices and factors [total], or [bags, length] in rows; offsets [bags + 1]. What is missing is
// the indices again. All three are dense. A table [rows, width] and gradients [bags, width] have any strides.

/**
 * Inputs: indices, offsets, factors, table. Outputs: [bags, width]; [bags], how many rows that are, in the dtype that
 * computes; and for the largest [bags, width], the number of the index whose row it is, −1 in an empty bag.
 */
const bagPrimitive = definePrimitive<BagAttributes>({
  name: "embeddingBag",
  family: "embedding",
  implementations: { metal: bagMetal, cpu: bagCpu, reference: bagReference },
});

/**
 * Inputs: indices, offsets, factors, gradients, counts and, for the largest, their numbers. Output: the gradient of the
 * table.
 */
const bagGradientPrimitive = definePrimitive<BagAttributes>({
  name: "embeddingBagGradient",
  family: "embedding",
  implementations: { metal: bagGradientMetal, cpu: bagGradientCpu, reference: bagGradientReference },
});

/** Inputs: indices, offsets, table, gradients. Output: the gradient of the factors, [total]. */
const bagFactorsPrimitive = definePrimitive<BagAttributes>({
  name: "embeddingBagFactors",
  family: "embedding",
  implementations: { metal: bagFactorsMetal, cpu: bagFactorsCpu, reference: bagFactorsReference },
});

/** Which indices are in which bags. */
export interface Bags {
  /** What the caller called, for errors. */
  readonly operation: string;
  /** Dense: [total], or [bags, length]. */
  readonly indices: Tensor<IndexDType>;
  /** Dense [bags + 1]; the indices where each bag has so many. */
  readonly offsets: Tensor<IndexDType>;
  readonly attributes: BagAttributes;
}

/** What the forward found out, for gradients: counts of the bags and, for the largest, the numbers of the indices. */
export type Found = readonly Tensor[];

/** The bags of a table, [bags, width]. @param factors of the indices' shape; for sums only */
export function bagRows(table: Tensor, factors: Tensor | undefined, bags: Bags): Tensor {
  const { operation, indices, offsets } = bags;
  const attributes = { ...bags.attributes, hasFactors: factors !== undefined };
  const shape = [attributes.bags, table.shape[1]!];
  const specs = [
    { shape, dtype: table.dtype },
    { shape: [attributes.bags], dtype: accumulationDType(table.dtype) },
    ...(attributes.mode === "max" ? [{ shape, dtype: "int64" } as const] : []),
  ];
  const dense = factors && noGrad(() => contiguous(factors));
  const inputs = [indices, offsets, dense ?? indices, table];
  const [output, ...found] = executeMany(bagPrimitive, inputs, specs, attributes, operation);
  const saved = [indices, offsets, table, ...found, ...(factors ? [factors] : [])];
  record(operation, factors ? [table, factors] : [table], [output!], saved, ([gradient], kept, needs) => {
    const [i, o, t, ...others] = kept as [Tensor<IndexDType>, Tensor<IndexDType>, Tensor, ...Tensor[]];
    const own = { ...bags, indices: i, offsets: o };
    const [counts, last] = [others.slice(0, found.length), factors && others.at(-1)];
    return [
      needs[0] ? tableGradient(gradient!, last, counts, own) : null,
      needs[1] ? factorGradient(t, gradient!, own) : null,
    ];
  });
  return output!;
}

/** The gradient of the table, [rows, width], from that of the bags. */
export function tableGradient(gradient: Tensor, factors: Tensor | undefined, found: Found, bags: Bags): Tensor {
  const { operation, indices, offsets } = bags;
  const attributes = { ...bags.attributes, hasFactors: factors !== undefined };
  const dense = factors && noGrad(() => contiguous(factors));
  const inputs = [indices, offsets, dense ?? indices, gradient, ...found];
  const shape = [attributes.rows, gradient.shape[1]!];
  const output = execute(bagGradientPrimitive, inputs, shape, gradient.dtype, attributes, operation);
  const saved = [indices, offsets, gradient, ...found, ...(factors ? [factors] : [])];
  record("embeddingBagGradient", factors ? [gradient, factors] : [gradient], [output], saved, ([h], kept, needs) => {
    const [i, o, g, ...others] = kept as [Tensor<IndexDType>, Tensor<IndexDType>, Tensor, ...Tensor[]];
    const own = { ...bags, indices: i, offsets: o };
    const ofGradient = () =>
      attributes.mode === "max"
        ? rowsAt(h!, i, others[1] as Tensor<"int64">)
        : bagRows(h!, factors && others.at(-1), own);
    return [needs[0] ? ofGradient() : null, needs[1] ? factorGradient(h!, g, own) : null];
  });
  return output;
}

/** The gradient of the factors: the product of each index' row with the gradient of its bag. */
function factorGradient(table: Tensor, gradient: Tensor, bags: Bags): Tensor {
  const { operation, indices, offsets, attributes } = bags;
  const inputs = [indices, offsets, table, gradient];
  const output = execute(bagFactorsPrimitive, inputs, indices.shape, table.dtype, attributes, operation);
  record("embeddingBagFactors", [table, gradient], [output], inputs, ([h], kept, needs) => {
    const [i, o, t, g] = kept as [Tensor<IndexDType>, Tensor<IndexDType>, Tensor, Tensor];
    const own = { ...bags, indices: i, offsets: o };
    return [needs[0] ? tableGradient(g, h!, [indices], own) : null, needs[1] ? bagRows(t, h!, own) : null];
  });
  return output;
}

/** For each column of each bag the element of the row that was the largest; 0 in empty bags. */
function rowsAt(table: Tensor, indices: Tensor<IndexDType>, best: Tensor<"int64">): Tensor {
  const isThere = noGrad(() => ge(best, 0));
  const numbers = noGrad(() => flatten(where(isThere, best, 0) as Tensor<"int64">) as Tensor<"int64">);
  if (indices.size === 0) return where(isThere, 1, 0) as Tensor; // of nothing but empty bags
  const rows = reshape(indexSelect(flatten(indices) as Tensor<IndexDType>, numbers, { dim: 0 }), best.shape);
  return where(isThere, gather(table, rows as Tensor<IndexDType>, { dim: 0 }), 0) as Tensor;
}
