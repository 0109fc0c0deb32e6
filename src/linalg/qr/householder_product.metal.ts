import type { MetalImplementation } from "../../backend/backend.ts";
import { noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { formBlocks, formTriangles, trianglesFor } from "./blocks.metal.ts";
import { fitsThreadgroup, launchQr } from "./layout.metal.ts";

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
    return launchQr({
      name: "householder_product",
      operands: [reads(a), reads(tau), writes(q)],
      sizes,
      width: lastElement(q.shape),
      reflectors,
      work: batch * rows * columns * Math.max(1, reflectors),
    });
  },
};
