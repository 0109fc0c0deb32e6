import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, writes } from "../../backend/metal/launch.ts";
import { elementGrid } from "../../backend/metal/loop.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type RangeAttributes, rangeParameters, type WholeRangeAttributes, wholeRangeParameters } from "./primitive.ts";

/** @internal `unsupported` for primitives without inputs: Metal has no float64. */
export const noFloat64Result = ({ attributes }: { readonly attributes: { readonly dtype: DType } }) =>
  attributes.dtype === "float64" ? "Metal has no float64" : undefined;

export const rangeMetal: MetalImplementation<RangeAttributes, readonly Tensor[], [Tensor]> = {
  unsupported: noFloat64Result,
  run({ outputs: [output], attributes: { forward, ...numbers } }) {
    const [start, step, end] = tupleOf([numbers.start, numbers.step, numbers.end].map(float64Bits), 3);
    return launchRange("range", output, rangeParameters.bytes({ start, step, end, forward, count: output.size }));
  },
};

export const wholeRangeMetal: MetalImplementation<WholeRangeAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes }) {
    return launchRange("whole_range", output, wholeRangeParameters.bytes({ ...attributes, count: output.size }));
  },
};

const float64Bits = (value: number): bigint => new BigUint64Array(Float64Array.of(value).buffer)[0];

const launchRange = (name: string, output: Tensor, parameters: Uint8Array): TicketRange =>
  launch({
    file: "creation/range.metal",
    name: `${name}_${metalTypeOf(output.dtype)}`,
    operands: [writes(output)],
    parameters,
    ...elementGrid(output.size),
  });
