import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { collapse, MAX_RANK } from "../../tensor/shape.ts";
import { elementBits } from "./element_bits.ts";
import type { FillAttributes } from "./fill.ts";

const block = new Float64Array(5 + 2 * MAX_RANK);

export const fillCpu: Implementation<FillAttributes> = {
  run({ operation, outputs: [output], attributes: { value } }) {
    const { dtype, offset, storage } = output!;
    const nest = collapse(output!.shape, [output!.strides]);
    block.set([bytesOf(dtype), offset, ...elementBits(dtype, value), nest.shape.length, ...nest.shape], 0);
    block.set(nest.strides[0]!, 5 + nest.shape.length);
    const { native } = cpuLibrary();
    check(native, native.orchard_cpu_fill(block, storage.hostBytes()), operation);
  },
};
