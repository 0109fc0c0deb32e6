import type { MetalImplementation } from "../../backend/backend.ts";
import { launchBatch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { MAX_SIZE, SERIAL, TILE_THREADS } from "../metal.ts";
import { fasterOnCpu } from "../route.ts";
import { type TriangularAttributes, triangularParameters, triangularValues } from "./primitive.ts";

/** Columns of B per threadgroup; for large matrices it must equal TILE_ROWS. */
const COLUMNS = 64;

export const triangularMetal: MetalImplementation<TriangularAttributes, [Tensor, Tensor], [Tensor]> = {
  unsupported(call) {
    const { batch, rows, columns } = matricesOf(call.inputs[1]);
    return noFloat64(call) ?? fasterOnCpu("solveTriangular", rows > MAX_SIZE, batch * rows ** 2 * columns);
  },
  run({ inputs: [a, b], outputs: [x], attributes }) {
    const { batch, rows, columns } = matricesOf(b);
    const isLarge = rows > MAX_SIZE;
    const values = triangularValues(a, b, attributes);
    return launchBatch(batch, SERIAL * batch * rows ** 2 * columns, (count) => ({
      file: isLarge ? "linalg/triangular_blocks.metal" : "linalg/triangular.metal",
      name: isLarge ? "solve_triangular_blocks" : "solve_triangular",
      operands: [reads(a), reads(b), writes(x)],
      parameters: triangularParameters.bytes({ ...values, batch: count }),
      threadgroups: [Math.ceil(columns / COLUMNS), count],
      threadgroup: isLarge ? TILE_THREADS : COLUMNS,
    }));
  },
};
