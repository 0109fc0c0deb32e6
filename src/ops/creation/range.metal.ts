import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, writes } from "../../backend/metal/launch.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { RangeAttributes, WholeRangeAttributes } from "./range.ts";

/** @internal `unsupported` of implementations that make a tensor from nothing. */
export const noFloat64Result = ({ attributes }: { readonly attributes: { readonly dtype: DType } }) =>
  attributes.dtype === "float64" ? "Metal has no float64" : undefined;

export const rangeMetal: Implementation<RangeAttributes> = {
  unsupported: noFloat64Result,
  run({ outputs: [output], attributes: { start, step, end, turn } }) {
    const numbers = new BigUint64Array(Float64Array.of(start, step, end).buffer);
    launchRange("range", output!, [...numbers, BigInt(turn)]);
  },
};

export const wholeRangeMetal: Implementation<WholeRangeAttributes> = {
  run({ outputs: [output], attributes: { start, step, rest, divisor } }) {
    launchRange("whole_range", output!, [start, step, rest, divisor]);
  },
};

const THREADS = 256;
/** The grid is rows of so many threads: a coordinate has 32 bits, an element's number may need more. */
const ROW = 2 ** 30;

function launchRange(name: string, output: Tensor, line: readonly bigint[]): void {
  const count = output.size;
  const words = BigUint64Array.from([...line, BigInt(count)], (word) => BigInt.asUintN(64, word));
  launch({
    file: "creation/range.metal",
    name: `${name}_${metalTypeOf(output.dtype)}`,
    operands: [writes(output)],
    parameters: new Uint8Array(words.buffer),
    grid: [Math.min(count, ROW), Math.ceil(count / ROW)],
    threadgroup: [Math.min(count, THREADS)],
  });
}
