import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { factorBlocks, finishBlocks, formBlocks, trianglesFor } from "./blocks.metal.ts";
import { fitsThreadgroup, launchQr } from "./layout.metal.ts";
import type { QrAttributes } from "./primitive.ts";

export const qrMetal: MetalImplementation<QrAttributes, [Tensor], [Tensor, Tensor]> = {
  unsupported(call) {
    const [a] = call.inputs;
    const { rows, columns } = matricesOf(a);
    return (
      noFloat64(call) ??
      fasterOnCpu("qr", !fitsThreadgroup(rows, Math.max(columns, call.attributes.width)), factorWork(a))
    );
  },
  run({ inputs: [a], outputs: [q, r], attributes: { width } }) {
    const sizes = matricesOf(a);
    const { batch, rows } = sizes;
    const columns = Math.max(sizes.columns, width);
    if (!fitsThreadgroup(rows, columns)) return runBlocks(a, q, r);
    return launchQr({
      name: "qr",
      operands: [reads(a), writes(q), writes(r)],
      sizes,
      columns,
      width,
      work: batch * rows * columns * Math.max(1, Math.min(rows, columns)),
    });
  },
};

function runBlocks(a: Tensor, q: Tensor, r: Tensor): TicketRange | null {
  const { batch, rows, columns } = matricesOf(a);
  const count = Math.min(rows, columns);
  if (count === 0) return spanOf(formBlocks({ a, tau: a, triangles: a }, q)); // Q is initialized to the unit matrix
  using factors = scratchTensor(a.shape, "float32");
  using tau = scratchTensor([batch, count], "float32");
  using triangles = trianglesFor(batch, count);
  const blocks = { a: factors, tau, triangles };
  const factored = factorBlocks(a, blocks);
  const formed = q.size > 0 ? formBlocks(blocks, q) : [];
  return spanOf([...factored, ...formed, ...finishBlocks(blocks, q, r)]);
}
