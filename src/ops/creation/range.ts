import { definePrimitive } from "../../backend/primitive.ts";
import type { RangeAttributes, WholeRangeAttributes } from "./primitive.ts";
import { rangeCpu, wholeRangeCpu } from "./range.cpu.ts";
import { rangeMetal, wholeRangeMetal } from "./range.metal.ts";
import { rangeReference, wholeRangeReference } from "./range.reference.ts";

export const rangePrimitive = definePrimitive<RangeAttributes>({
  name: "range",
  family: "creation",
  implementations: { metal: rangeMetal, cpu: rangeCpu, reference: rangeReference },
});

export const wholeRangePrimitive = definePrimitive<WholeRangeAttributes>({
  name: "wholeRange",
  family: "creation",
  implementations: { metal: wholeRangeMetal, cpu: wholeRangeCpu, reference: wholeRangeReference },
});
