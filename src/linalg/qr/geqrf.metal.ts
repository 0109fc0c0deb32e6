import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, reads, writes } from "../../backend/metal/launch.ts";
import { matricesOf } from "../matrices.ts";
import { bytesFor, matrixFloats, strideFor, teamFor, threadsOf, whyTooLarge } from "./layout.metal.ts";
import { qrParameters } from "./primitive.ts";

export const geqrfMetal: MetalImplementation<undefined> = {
  unsupported(call) {
    const { rows, columns } = matricesOf(call.inputs[0]!);
    return whyTooLarge(call, rows, columns);
  },
  run({ inputs: [a], outputs: [factors, tau] }) {
    const sizes = matricesOf(a!);
    const { batch, rows, columns } = sizes;
    const team = teamFor(rows);
    return launch({
      file: "linalg/qr.metal",
      name: "geqrf",
      operands: [reads(a!), writes(factors!), writes(tau!)],
      parameters: qrParameters.bytes({ ...sizes, width: 0, reflectors: 0, stride: strideFor(columns), team }),
      threadgroups: [batch],
      threadgroup: threadsOf(columns, team),
      threadgroupMemory: [bytesFor(matrixFloats(rows, columns))],
    });
  },
};
