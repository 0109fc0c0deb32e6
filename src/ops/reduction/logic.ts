import type { Parsed } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { type axesParameters, fold, planReduction, type ReductionArguments, reductionParameters } from "./reduce.ts";

/** What `all` and `any` give: bool, but uint8 of uint8, as PyTorch has it. */
export type TruthOf<D extends DType> = D extends "uint8" ? "uint8" : "bool";

/**
 * Whether all elements along the axes are other than 0; NaN is. True of nothing. With an empty list of axes each
 * element is for itself, as in PyTorch.
 *
 * @example
 * all(tensor([[1, 2], [0, 4]]), { dim: 1 }); // bool [true, false]
 *
 * @throws {ShapeError} for an axis out of range, or named twice.
 */
export function all<D extends DType>(x: Tensor<D>, ...options: ReductionArguments): Tensor<TruthOf<D>>;
export function all(...values: unknown[]): Tensor {
  return truth("all", allParameters(values));
}
const allParameters = reductionParameters("all");
all.method = "truth" as const;

/**
 * Whether any element along the axes is other than 0. False of nothing. @see {@link all}
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
  return fold(name, x, planReduction(name, x, { dim, keepdim }), dtype);
}
