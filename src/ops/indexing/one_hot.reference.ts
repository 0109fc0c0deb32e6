import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRange } from "./range.reference.ts";

export const oneHotReference: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ operation, inputs: [index], outputs: [output] }) {
    const classes = lastElement(output.shape);
    checkRange({ operation, index: index, size: classes });
    const rows = toIntegers(index).map((value) =>
      Array.from({ length: classes }, (_, label) => BigInt(label) === value),
    );
    store(output, rows.flat());
  },
};
