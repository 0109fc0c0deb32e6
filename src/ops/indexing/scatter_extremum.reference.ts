import type { Implementation } from "../../backend/backend.ts";
import { forEachIndex, store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { rowMajorStrides } from "../../tensor/shape.ts";
import type { ScatterExtremumAttributes } from "./primitive.ts";
import { checkRange } from "./range.reference.ts";

export const scatterExtremumReference: Implementation<ScatterExtremumAttributes> = {
  run({
    inputs: [x, index, source],
    outputs: [output],
    attributes: { operation, dim, axes, isLargest, includesSelf },
  }) {
    checkRange({ operation, index: index!, size: x!.shape[dim]!, axes });
    const indices = toIntegers(index!);
    const strides = rowMajorStrides(output!.shape);
    const isFound = new Uint8Array(output!.size).fill(Number(includesSelf));
    /** NaN is larger and smaller than any number. */
    const put = <Value extends number | bigint>(best: { [at: number]: Value }, values: ArrayLike<Value>): void =>
      forEachIndex(source!.shape, [{ strides: strides.with(dim, 0), offset: 0 }], ([offset], element) => {
        const at = offset! + Number(indices[element]!) * strides[dim]!;
        const own = values[element] as Value;
        const other = best[at] as Value;
        const isBetter = isLargest ? own > other : own < other;
        if (!isFound[at] || isBetter || Number.isNaN(Number(own))) best[at] = own;
        isFound[at] = 1;
      });
    if (isFloat(x!.dtype)) {
      const best = Float64Array.from(toNumbers(x!));
      put(best, toNumbers(source!));
      store(output!, best);
    } else {
      const best = toIntegers(x!).slice();
      put(best, toIntegers(source!));
      store(output!, best);
    }
  },
};
