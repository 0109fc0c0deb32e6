import { executeInto } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fillCpu } from "./fill.cpu.ts";
import { fillMetal } from "./fill.metal.ts";
import { fillReference } from "./fill.reference.ts";
import type { FillAttributes } from "./primitive.ts";

export const fillPrimitive = definePrimitive<FillAttributes>({
  name: "fill",
  family: "creation",
  implementations: { metal: fillMetal, cpu: fillCpu, reference: fillReference },
});

/** @internal Fills an existing tensor or view in place, without recording it. */
export const fillInto = (target: Tensor, value: Scalar): void => executeInto(fillPrimitive, [], [target], { value });
