import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fold, planReduction, type ReductionOptions } from "./reduce.ts";

/** What `all` and `any` give: bool, but uint8 of uint8, as PyTorch has it. */
export type TruthOf<D extends DType> = D extends "uint8" ? "uint8" : "bool";

/**
 * Whether all elements along the axes are other than 0; NaN is. True of nothing.
 *
 * @example
 * all(tensor([[1, 2], [0, 4]]), { dim: 1 }); // bool [true, false]
 *
 * @throws {ShapeError} for an axis out of range, or named twice.
 */
export const all = <D extends DType>(x: Tensor<D>, options: ReductionOptions = {}): Tensor<TruthOf<D>> =>
  fold("all", x, planReduction("all", x, options), x.dtype === "uint8" ? "uint8" : "bool") as Tensor<TruthOf<D>>;
all.method = "truth" as const;

/**
 * Whether any element along the axes is other than 0. False of nothing. @see {@link all}
 *
 * @example
 * any(tensor([0, 2])); // bool true
 */
export const any = <D extends DType>(x: Tensor<D>, options: ReductionOptions = {}): Tensor<TruthOf<D>> =>
  fold("any", x, planReduction("any", x, options), x.dtype === "uint8" ? "uint8" : "bool") as Tensor<TruthOf<D>>;
any.method = "truth" as const;
