import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { matricesOf } from "../matrices.ts";
import { tooLargeForThreadgroup } from "../metal.ts";
import { type TriangularAttributes, triangularParameters, triangularValues } from "./primitive.ts";

/** Columns of B that a threadgroup takes, a thread each. */
const COLUMNS = 64;

export const triangularMetal: MetalImplementation<TriangularAttributes> = {
  unsupported: (call) => noFloat64(call) ?? tooLargeForThreadgroup(call.inputs[0]!),
  run({ inputs: [a, b], outputs: [x], attributes }) {
    const { batch, columns } = matricesOf(b!);
    return launch({
      file: "linalg/triangular.metal",
      name: "solve_triangular",
      operands: [reads(a!), reads(b!), writes(x!)],
      parameters: triangularParameters.bytes(triangularValues(a!, b!, attributes)),
      threadgroups: [Math.ceil(columns / COLUMNS), batch],
      threadgroup: COLUMNS,
    });
  },
};
