import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mean } from "../reduction/mean.ts";
import { sum } from "../reduction/sum.ts";
import type { LossReduction } from "./options.ts";

/** The dtype in which losses of a dtype are computed and summed. */
export const wideOf = (dtype: DType): "float64" | "float32" => (dtype === "float64" ? "float64" : "float32");

/** The losses of all elements, their sum or their mean. */
export const reduced = (losses: Tensor, reduction: LossReduction): Tensor =>
  reduction === "none" ? losses : reduction === "sum" ? (sum(losses) as Tensor) : mean(losses);
