import type { Primitive } from "../../backend/backend.ts";
import { gatherCpu } from "./gather.cpu.ts";
import { gatherMetal } from "./gather.metal.ts";
import { gatherReference } from "./gather.reference.ts";

export interface GatherAttributes {
  /** Who asks, for errors. */
  readonly operation: string;
  /** The axis that is indexed. */
  readonly dim: number;
  /** See {@link IndexRange}. */
  readonly axes?: readonly number[];
}

/** Inputs x and index, output: index and output have one shape, and x too but for the axis that is indexed. */
export const gatherPrimitive: Primitive<GatherAttributes> = {
  name: "gather",
  implementations: { metal: gatherMetal, cpu: gatherCpu, reference: gatherReference },
};
