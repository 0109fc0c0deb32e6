import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import type { ReductionPlan } from "./reduce.ts";

/** @internal Expands a result, or its gradient, along the reduced axes. */
export const expandResult = (result: Tensor, { kept }: ReductionPlan, shape: Shape): Tensor =>
  expand(reshape(result, kept), shape);
