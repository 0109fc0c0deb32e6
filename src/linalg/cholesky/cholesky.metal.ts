import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { isTransposed, matricesOf } from "../matrices.ts";
import { threadsFor, tooLargeForThreadgroup } from "../metal.ts";
import { choleskyParameters } from "./primitive.ts";

export const choleskyMetal: MetalImplementation<undefined> = {
  unsupported: (call) => noFloat64(call) ?? tooLargeForThreadgroup(call.inputs[0]!),
  run({ inputs: [a], outputs: [factor, info] }) {
    const { batch, rows: size } = matricesOf(a!);
    return launch({
      file: "linalg/cholesky.metal",
      name: "cholesky",
      operands: [reads(a!), writes(factor!), writes(info!)],
      parameters: choleskyParameters.bytes({ batch, size, upper: isTransposed(a!) }),
      threadgroups: [batch],
      threadgroup: threadsFor(size),
    });
  },
};
