import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, reads, writes } from "../../backend/metal/launch.ts";
import { matricesOf } from "../matrices.ts";
import { bytesFor, matrixFloats, strideFor, teamFor, threadsOf, whyTooLarge } from "./layout.metal.ts";
import { qrParameters } from "./primitive.ts";

export const productMetal: MetalImplementation<undefined> = {
  unsupported(call) {
    const { rows, columns } = matricesOf(call.inputs[0]!);
    return whyTooLarge(call, rows, columns);
  },
  run({ inputs: [a, tau], outputs: [q] }) {
    const sizes = matricesOf(a!);
    const { batch, rows, columns } = sizes;
    const team = teamFor(rows);
    const reflectors = tau!.shape.at(-1)!;
    const stride = strideFor(columns);
    return launch({
      file: "linalg/qr.metal",
      name: "householder_product",
      operands: [reads(a!), reads(tau!), writes(q!)],
      parameters: qrParameters.bytes({ ...sizes, width: q!.shape.at(-1)!, reflectors, stride, team }),
      threadgroups: [batch],
      threadgroup: threadsOf(columns, team),
      threadgroupMemory: [bytesFor(matrixFloats(rows, columns))],
    });
  },
};
