import type { Primitive } from "../../backend/backend.ts";
import { executeInto } from "../../backend/dispatch.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fillCpu } from "./fill.cpu.ts";
import { fillMetal } from "./fill.metal.ts";
import { fillReference } from "./fill.reference.ts";

/** Every element becomes one value, into any strides. */
export interface FillAttributes {
  readonly value: Scalar;
}

export const fillPrimitive: Primitive<FillAttributes> = {
  name: "fill",
  implementations: { metal: fillMetal, cpu: fillCpu, reference: fillReference },
};

/** @internal Fills a view that is there. Not recorded. */
export const fillInto = (target: Tensor, value: Scalar): void => executeInto(fillPrimitive, [], [target], { value });
