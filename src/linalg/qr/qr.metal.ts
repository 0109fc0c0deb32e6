import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, reads, writes } from "../../backend/metal/launch.ts";
import { matricesOf } from "../matrices.ts";
import { bytesFor, matrixFloats, strideFor, teamFor, threadsOf, whyTooLarge } from "./layout.metal.ts";
import { type QrAttributes, qrParameters } from "./primitive.ts";

export const qrMetal: MetalImplementation<QrAttributes> = {
  unsupported(call) {
    const { rows, columns } = matricesOf(call.inputs[0]!);
    return whyTooLarge(call, rows, Math.max(columns, call.attributes.width));
  },
  run({ inputs: [a], outputs: [q, r], attributes: { width } }) {
    const sizes = matricesOf(a!);
    const { batch, rows } = sizes;
    const columns = Math.max(sizes.columns, width);
    const team = teamFor(rows);
    return launch({
      file: "linalg/qr.metal",
      name: "qr",
      operands: [reads(a!), writes(q!), writes(r!)],
      parameters: qrParameters.bytes({ ...sizes, width, reflectors: 0, stride: strideFor(columns), team }),
      threadgroups: [batch],
      threadgroup: threadsOf(columns, team),
      threadgroupMemory: [bytesFor(matrixFloats(rows, columns))],
    });
  },
};
