import type { Parsed } from "../../core/parameters.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { ne } from "../elementwise/comparison.ts";
import { type axesParameters, fold, planReduction, type ReductionArguments, reductionParameters } from "./reduce.ts";

/** Result dtype of `all` and `any`: bool, but uint8 for uint8, as in PyTorch. */
export type TruthOf<D extends DType> = D extends "uint8" ? "uint8" : "bool";

/**
 * Tests whether all elements along the axes are nonzero. NaN is nonzero. The result is true if there are no elements.
 * With an empty list of axes each element is tested separately, as in PyTorch.
 *
 * @example
 * all(tensor([[1, 2], [0, 4]]), { dim: 1 }); // bool [true, false]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function all<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<TruthOf<D>>;
export function all(...values: unknown[]): Tensor {
  return truth("all", allParameters(values));
}
const allParameters = reductionParameters("all");
all.method = "truth" as const;

/**
 * Tests whether any element along the axes is nonzero. The result is false if there are no elements. @see {@link all}
 *
 * @example
 * any(tensor([0, 2])); // bool true
 */
export function any<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<TruthOf<D>>;
export function any(...values: unknown[]): Tensor {
  return truth("any", anyParameters(values));
}
const anyParameters = reductionParameters("any");
any.method = "truth" as const;

function truth(name: "all" | "any", { x, dim, keepdim }: Parsed<typeof axesParameters>): Tensor {
  const dtype = x.dtype === "uint8" ? "uint8" : "bool";
  if (Array.isArray(dim) && dim.length === 0) return toDType(toDType(x, "bool"), dtype);
  if (isComplex(x.dtype)) return truth(name, { x: ne(x, 0), dim, keepdim });
  return fold(name, x, planReduction(name, x, { dim, keepdim }), dtype);
}
