import type { Implementation } from "../../backend/backend.ts";
import { forEachIndex, store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { rowMajorStrides } from "../../tensor/shape.ts";
import type { IndexAttributes } from "./primitive.ts";
import { checkRange } from "./range.reference.ts";

export const scatterAddReference: Implementation<IndexAttributes> = {
  run({ inputs: [x, index, source], outputs: [output], attributes: { operation, dim, axes } }) {
    checkRange({ operation, index: index!, size: x!.shape[dim]!, axes });
    const indices = toIntegers(index!);
    const strides = rowMajorStrides(output!.shape);
    const targets = new Array<number>(indices.length);
    forEachIndex(source!.shape, [{ strides: strides.with(dim, 0), offset: 0 }], ([offset], element) => {
      targets[element] = offset! + Number(indices[element]!) * strides[dim]!;
    });
    if (isFloat(x!.dtype)) {
      const added = new Float64Array(output!.size);
      for (const [element, value] of toNumbers(source!).entries()) added[targets[element]!]! += value;
      store(
        output!,
        toNumbers(x!).map((value, element) => value + added[element]!),
      );
    } else {
      const sums = toIntegers(x!);
      for (const [element, value] of toIntegers(source!).entries()) sums[targets[element]!]! += value;
      store(output!, sums);
    }
  },
};
