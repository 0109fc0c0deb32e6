import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { matricesOf } from "../matrices.ts";
import { tooLargeForThreadgroup } from "../metal.ts";
import { type EighAttributes, eighParameters } from "./primitive.ts";

/** Matrices of up to so many rows have a kernel with that much threadgroup memory, and so many threads. */
const kernels = [
  { rows: 8, threads: 32 },
  { rows: 16, threads: 32 },
  { rows: 32, threads: 128 },
  { rows: 64, threads: 256 },
] as const;

export const eighMetal: MetalImplementation<EighAttributes> = {
  unsupported: (call) => noFloat64(call) ?? tooLargeForThreadgroup(call.inputs[0]!),
  run({ inputs: [a], outputs: [eigenvalues, info, eigenvectors], attributes: { upper } }) {
    const { batch, rows: size } = matricesOf(a!);
    const { rows, threads } = kernels.find((own) => size <= own.rows)!;
    return launch({
      file: "linalg/eigh.metal",
      name: `${eigenvectors === undefined ? "eigvalsh" : "eigh"}_${rows}`,
      operands: [a!].map(reads).concat([eigenvalues!, info!, ...(eigenvectors ? [eigenvectors] : [])].map(writes)),
      parameters: eighParameters.bytes({ batch, size, upper }),
      threadgroups: [batch],
      threadgroup: threads,
    });
  },
};
