import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import type { QrAttributes } from "./primitive.ts";
import { applyReflections, reflect, unitMatrix } from "./reflections.reference.ts";

export const qrReference: Implementation<QrAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ inputs: [a], outputs: [q, r], attributes: { width } }) {
    const { rows, columns } = matricesOf(a);
    const inner = r.shape.at(-2)!;
    const results = matricesIn(a).map((matrix) => {
      const tau = reflect(matrix, rows, columns);
      const orthogonal = unitMatrix(rows, width);
      applyReflections({ a: matrix, stride: columns, tau }, orthogonal, width, false);
      const upper = new Float64Array(inner * columns);
      for (let i = 0; i < tau.length; i++) {
        const isNegative = matrix[i * columns + i] < 0;
        for (let j = i; j < columns; j++) upper[i * columns + j] = signed(matrix[i * columns + j], isNegative);
        for (let row = 0; i < width && row < rows; row++)
          orthogonal[row * width + i] = signed(orthogonal[row * width + i], isNegative);
      }
      return { orthogonal, upper };
    });
    storeMatrices(
      q,
      results.map(({ orthogonal }) => orthogonal),
    );
    storeMatrices(
      r,
      results.map(({ upper }) => upper),
    );
  },
};

const signed = (value: number, isNegative: boolean): number => (isNegative ? 0 - value : value);
