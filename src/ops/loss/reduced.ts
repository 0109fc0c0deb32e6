import type { Tensor } from "../../tensor/tensor.ts";
import { mean } from "../reduction/mean.ts";
import { sum } from "../reduction/sum.ts";
import type { LossReduction } from "./options.ts";

/** Returns the losses, their sum or their mean. */
export const reduced = (losses: Tensor, reduction: LossReduction): Tensor =>
  reduction === "none" ? losses : reduction === "sum" ? sum(losses) : mean(losses);
