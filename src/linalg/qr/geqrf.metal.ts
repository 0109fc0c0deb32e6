import type { MetalImplementation } from "../../backend/backend.ts";
import { noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { factorBlocks, trianglesFor } from "./blocks.metal.ts";
import { fitsThreadgroup, launchQr } from "./layout.metal.ts";

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
    return launchQr({ name: "geqrf", operands: [reads(a), writes(factors), writes(tau)], sizes, work: factorWork(a) });
  },
};
