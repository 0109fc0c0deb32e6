import type { Primitive } from "../../backend/backend.ts";
import type { GatherAttributes } from "./gather_primitive.ts";
import { scatterAddCpu } from "./scatter_add.cpu.ts";
import { scatterAddMetal } from "./scatter_add.metal.ts";
import { scatterAddReference } from "./scatter_add.reference.ts";

export type ScatterAttributes = GatherAttributes;

/** Inputs x, index and source: index and source have one shape, and x and the output too but for the axis that is indexed. */
export const scatterAddPrimitive: Primitive<ScatterAttributes> = {
  name: "scatterAdd",
  implementations: { metal: scatterAddMetal, cpu: scatterAddCpu, reference: scatterAddReference },
};
