import type { MetalImplementation } from "../../backend/backend.ts";
import { launchBatch, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { SERIAL } from "../metal.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { formBlocks, formTriangles, trianglesFor } from "./blocks.metal.ts";
import { bytesFor, fitsThreadgroup, matrixFloats, strideFor, teamFor, threadsOf } from "./layout.metal.ts";
import { qrParameters } from "./primitive.ts";

export const productMetal: MetalImplementation<undefined, [Tensor, Tensor], [Tensor]> = {
  unsupported(call) {
    const [a] = call.inputs;
    const { rows, columns } = matricesOf(a);
    return noFloat64(call) ?? fasterOnCpu("qr", !fitsThreadgroup(rows, columns), factorWork(a));
  },
  run({ inputs: [a, tau], outputs: [q] }) {
    const sizes = matricesOf(a);
    const { batch, rows, columns } = sizes;
    const reflectors = lastElement(tau.shape);
    if (!fitsThreadgroup(rows, columns)) {
      using triangles = trianglesFor(batch, reflectors);
      const blocks = { a: a, tau: tau, triangles };
      return spanOf([...(reflectors > 0 ? [formTriangles(blocks)] : []), ...formBlocks(blocks, q)]);
    }
    const team = teamFor(rows);
    const stride = strideFor(columns);
    return launchBatch(batch, SERIAL * batch * rows * columns * Math.max(1, reflectors), (count) => ({
      file: "linalg/qr.metal",
      name: "householder_product",
      operands: [reads(a), reads(tau), writes(q)],
      parameters: qrParameters.bytes({ ...sizes, batch: count, width: lastElement(q.shape), reflectors, stride, team }),
      threadgroups: [count],
      threadgroup: threadsOf(columns, team),
      threadgroupMemory: [bytesFor(matrixFloats(rows, columns))],
    }));
  },
};
