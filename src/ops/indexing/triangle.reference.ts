import type { Implementation } from "../../backend/backend.ts";
import { forEachIndex } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { TriangleAttributes } from "./primitive.ts";

export const triangleReference: Implementation<TriangleAttributes, [Tensor], [Tensor]> = {
  run({ inputs: [x], outputs: [output], attributes: { lower, diagonal } }) {
    const [rows, columns] = [x.shape.at(-2)!, lastElement(x.shape)];
    const from = x.storage.array(x.dtype);
    const to = output.storage.array(output.dtype);
    const zero = x.dtype === "int64" ? 0n : 0;
    forEachIndex(x.shape, [x, output], ([source, target], element) => {
      const column = element % columns;
      const edge = (Math.floor(element / columns) % rows) + diagonal;
      to[target] = (lower ? column <= edge : column >= edge) ? from[source] : zero;
    });
  },
};
