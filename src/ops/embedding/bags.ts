/**
 * Differentiable bags of rows. Bags are linear in the table and in the factors of the indices. Three operations are
 * therefore each other's gradients, to any order: the bags, the gradient of the table, and the gradient of the factors.
 * In mode max, the saved positions of the largest rows determine where gradients go.
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
import { composedBags, composedFactorGradient, composedTableGradient } from "./composed_bags.ts";
import type { BagAttributes } from "./primitive.ts";

// All three operations have these inputs: indices and factors [total], or [bags, length] with one bag per row; offsets
// [bags + 1]. Missing operands are replaced by the indices. These inputs are contiguous. The table [rows, width] and
// gradients [bags, width] may be strided.

/**
 * Inputs: indices, offsets, factors, table. Outputs: the bags [bags, width]; the number of rows of each bag [bags], in
 * the accumulation dtype; and in mode max, the position of the index of the largest row [bags, width], −1 in an empty
 * bag.
 */
const bagPrimitive = definePrimitive<BagAttributes>({
  name: "embeddingBag",
  family: "embedding",
  implementations: { metal: bagMetal, cpu: bagCpu, reference: bagReference },
});

/**
 * Inputs: indices, offsets, factors, gradients, counts and, in mode max, the positions of the largest rows. Output: the
 * gradient of the table.
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

/** The assignment of indices to bags. */
export interface Bags {
  /** The operation that the caller called, for errors. */
  readonly operation: string;
  /** Contiguous: [total], or [bags, length]. */
  readonly indices: Tensor<IndexDType>;
  /** Contiguous [bags + 1]; the indices again if all bags have the same length. */
  readonly offsets: Tensor<IndexDType>;
  readonly attributes: BagAttributes;
}

/** Whether operands differ between the examples of `vmap`. */
const isBatched = (...operands: readonly Tensor[]): boolean => operands.some(({ storage }) => storage.batch);

/**
 * Results of the forward pass that gradients need: the counts of the bags and, in mode max, the positions of the
 * largest rows.
 */
export type Found = readonly Tensor[];

/** Computes the bags of a table, [bags, width]. @param factors of the indices' shape; for sums only */
export function bagRows(table: Tensor, factors: Tensor | undefined, bags: Bags): Tensor {
  const { operation, indices, offsets } = bags;
  if (isBatched(table, indices, offsets, ...(factors ? [factors] : []))) return composedBags(table, factors, bags);
  const attributes = { ...bags.attributes, hasFactors: factors !== undefined };
  const shape = [attributes.bags, table.shape[1]];
  const specs = [
    { shape, dtype: table.dtype },
    { shape: [attributes.bags], dtype: accumulationDType(table.dtype) },
    ...(attributes.mode === "max" ? [{ shape, dtype: "int64" } as const] : []),
  ] as const;
  const dense = factors && noGrad(() => contiguous(factors));
  const inputs = [indices, offsets, dense ?? indices, table];
  const [output, ...found] = executeMany(bagPrimitive, inputs, specs, attributes, operation);
  const saved = [indices, offsets, table, ...found, ...(factors ? [factors] : [])] as const;
  record(operation, factors ? [table, factors] : [table], [output], saved, ([gradient], kept, needs) => {
    const [i, o, t, ...others] = kept;
    const savedBags = { ...bags, indices: i, offsets: o };
    const [counts, last] = [others.slice(0, found.length), factors && others.at(-1)];
    return [
      needs[0] ? tableGradient(gradient, last, counts, savedBags) : null,
      needs[1] ? factorGradient(t, gradient, savedBags) : null,
    ];
  });
  return output;
}

/** Computes the gradient of the table, [rows, width], from the gradient of the bags. */
export function tableGradient(gradient: Tensor, factors: Tensor | undefined, found: Found, bags: Bags): Tensor {
  const { operation, indices, offsets } = bags;
  if (isBatched(gradient, indices, offsets, ...(factors ? [factors] : [])))
    return composedTableGradient(gradient, factors, found, bags);
  const attributes = { ...bags.attributes, hasFactors: factors !== undefined };
  const dense = factors && noGrad(() => contiguous(factors));
  const inputs = [indices, offsets, dense ?? indices, gradient, ...found];
  const shape = [attributes.rows, gradient.shape[1]];
  const output = execute(bagGradientPrimitive, inputs, shape, gradient.dtype, attributes, operation);
  const saved = [indices, offsets, gradient, ...found, ...(factors ? [factors] : [])] as const;
  record("embeddingBagGradient", factors ? [gradient, factors] : [gradient], [output], saved, ([h], kept, needs) => {
    const [i, o, g, ...others] = kept;
    const savedBags = { ...bags, indices: i, offsets: o };
    const ofGradient = () =>
      attributes.mode === "max"
        ? rowsAt(h, i, others[1] as Tensor<"int64">)
        : bagRows(h, factors && others.at(-1), savedBags);
    return [needs[0] ? ofGradient() : null, needs[1] ? factorGradient(h, g, savedBags) : null];
  });
  return output;
}

/** Computes the gradient of the factors: the dot product of each index's row with the gradient of its bag. */
function factorGradient(table: Tensor, gradient: Tensor, bags: Bags): Tensor {
  const { operation, indices, offsets, attributes } = bags;
  if (isBatched(gradient, indices, offsets, table)) return composedFactorGradient(table, gradient, bags);
  const inputs = [indices, offsets, table, gradient] as const;
  const output = execute(bagFactorsPrimitive, inputs, indices.shape, table.dtype, attributes, operation);
  record("embeddingBagFactors", [table, gradient], [output], inputs, ([h], kept, needs) => {
    const [i, o, t, g] = kept;
    const savedBags = { ...bags, indices: i, offsets: o };
    return [needs[0] ? tableGradient(g, h, [indices], savedBags) : null, needs[1] ? bagRows(t, h, savedBags) : null];
  });
  return output;
}

/** Returns, for each column of each bag, the table's element in the row that was the largest; 0 in empty bags. */
function rowsAt(table: Tensor, indices: Tensor<IndexDType>, best: Tensor<"int64">): Tensor {
  const isThere = noGrad(() => ge(best, 0));
  const numbers = noGrad(() => flatten(where(isThere, best, 0n)));
  if (indices.size === 0) return where(isThere, 1, 0); // all bags are empty
  const rows = reshape(indexSelect(flatten(indices), numbers, { dim: 0 }), best.shape);
  return where(isThere, gather(table, rows, { dim: 0 }), 0);
}
