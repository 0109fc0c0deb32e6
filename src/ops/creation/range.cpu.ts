import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { splitWords } from "../../random/philox.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { RangeAttributes, WholeRangeAttributes } from "./range.ts";

const head = ({ size, dtype, offset }: Tensor): number[] => [size, dtypeFacts[dtype].code, offset];

export const rangeCpu: Implementation<RangeAttributes> = {
  run({ operation, outputs: [output], attributes: { start, step, end, turn } }) {
    const block = Float64Array.of(...head(output!), start, step, end, turn);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_range(block, output!.storage.hostBytes()), operation);
  },
};

export const wholeRangeCpu: Implementation<WholeRangeAttributes> = {
  run({ operation, outputs: [output], attributes: { start, step, rest, divisor } }) {
    const block = Float64Array.of(...head(output!), ...[start, step, rest, divisor].flatMap(splitWords));
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_whole_range(block, output!.storage.hostBytes()), operation);
  },
};
