import type { Primitive } from "../../backend/backend.ts";
import { sortCpu } from "./sort.cpu.ts";
import { sortMetal } from "./sort.metal.ts";
import { sortReference } from "./sort.reference.ts";

export interface SortAttributes {
  readonly dim: number;
  readonly descending: boolean;
}

/** Input x; outputs values and indices (int64): the first elements in order, as many as the outputs have along the axis. */
export const sortPrimitive: Primitive<SortAttributes> = {
  name: "sort",
  implementations: { metal: sortMetal, cpu: sortCpu, reference: sortReference },
};
