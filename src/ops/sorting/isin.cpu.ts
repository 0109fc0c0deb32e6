/** `isin` in one call of the cpu backend. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";

interface IsinAttributes {
  readonly invert: boolean;
}

/** One thread prepares the elements to search, so more of them are sorted by an operation that uses all threads. */
const MOST_OTHERS = 1 << 12;

const isinCall = cpuCall("isin", { dtype, count: whole, others: whole, invert: flag, offsets: array(whole, 3) }, [
  "elements",
  "others",
  "out",
]);

const isinCpu: Implementation<IsinAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [elements, others], outputs: [out], attributes: { invert } }) {
    const offsets = [elements.offset, others.offset, out.offset];
    const sizes = { count: elements.size, others: others.size };
    isinCall(operation, { dtype: elements.dtype, ...sizes, invert, offsets }, [elements, others, out]);
  },
};

const isinPrimitive = definePrimitive<IsinAttributes>({
  name: "isin",
  family: "sorting",
  implementations: { metal: onlyCpuFuses, cpu: isinCpu, reference: onlyCpuFuses },
});

/** Whether {@link isAmong} applies to tensors of one dtype. */
export const fusesIsin = (elements: Tensor, others: Tensor): boolean =>
  others.size <= MOST_OTHERS && !isComplex(elements.dtype) && fusesOnCpu(elements, others);

export const isAmong = (elements: Tensor, others: Tensor, invert: boolean): Tensor<"bool"> =>
  execute(isinPrimitive, [contiguous(elements), contiguous(others)], elements.shape, "bool", { invert }, "isin");
