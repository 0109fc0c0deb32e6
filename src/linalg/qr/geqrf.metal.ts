import type { MetalImplementation } from "../../backend/backend.ts";
import { launchBatch, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { SERIAL } from "../metal.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { factorBlocks, trianglesFor } from "./blocks.metal.ts";
import { bytesFor, fitsThreadgroup, matrixFloats, strideFor, teamFor, threadsOf } from "./layout.metal.ts";
import { qrParameters } from "./primitive.ts";

export const geqrfMetal: MetalImplementation<undefined, [Tensor], [Tensor, Tensor]> = {
  unsupported(call) {
    const [a] = call.inputs;
    const { rows, columns } = matricesOf(a);
    return noFloat64(call) ?? fasterOnCpu("qr", !fitsThreadgroup(rows, columns), factorWork(a));
  },
  run({ inputs: [a], outputs: [factors, tau] }) {
    const sizes = matricesOf(a);
    const { batch, rows, columns } = sizes;
    if (!fitsThreadgroup(rows, columns)) {
      using triangles = trianglesFor(batch, Math.min(rows, columns));
      return spanOf(factorBlocks(a, { a: factors, tau: tau, triangles }));
    }
    const team = teamFor(rows);
    return launchBatch(batch, SERIAL * factorWork(a), (count) => ({
      file: "linalg/qr.metal",
      name: "geqrf",
      operands: [reads(a), writes(factors), writes(tau)],
      parameters: qrParameters.bytes({
        ...sizes,
        batch: count,
        width: 0,
        reflectors: 0,
        stride: strideFor(columns),
        team,
      }),
      threadgroups: [count],
      threadgroup: threadsOf(columns, team),
      threadgroupMemory: [bytesFor(matrixFloats(rows, columns))],
    }));
  },
};
