import type { Implementation } from "../../backend/backend.ts";
import { forEachIndex, toIntegers } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { IndexAttributes } from "./primitive.ts";
import { checkRange } from "./range.reference.ts";

/** Copies elements in their stored form, without converting them. */
export const gatherReference: Implementation<IndexAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, index], outputs: [output], attributes: { operation, dim, wraps = false, ...caller } }) {
    const size = x.shape[dim];
    const indices = toIntegers(index).map((place) => (wraps && place < 0n ? place + BigInt(size) : place));
    checkRange({ operation, index, size, wraps, ...caller });
    const from = x.storage.array(x.dtype);
    const to = output.storage.array(output.dtype);
    const others = { strides: x.strides.with(dim, 0), offset: x.offset };
    forEachIndex(output.shape, [others, output], ([source, target], element) => {
      to[target] = from[source + Number(indices[element]) * x.strides[dim]];
    });
  },
};
