import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { matricesOf } from "../matrices.ts";
import { bytesFor, strideFor, teamFor, threadsOf, tileFor } from "./layout.metal.ts";
import { type OrmqrAttributes, ormqrParameters } from "./primitive.ts";

export const ormqrMetal: MetalImplementation<OrmqrAttributes> = {
  unsupported(call) {
    const { rows } = matricesOf(call.inputs[0]!);
    const float64 = noFloat64(call);
    if (float64 !== undefined || tileFor(rows) > 0) return float64;
    return `the kernel takes columns that fit 32 KB of threadgroup memory, got ${rows} rows`;
  },
  run({ inputs: [a, tau, c], outputs: [product], attributes }) {
    const sizes = matricesOf(a!);
    const { batch, rows } = sizes;
    const width = c!.shape.at(-1)!;
    const tile = Math.min(width, tileFor(rows));
    const team = teamFor(rows);
    const reflectors = tau!.shape.at(-1)!;
    return launch({
      file: "linalg/ormqr.metal",
      name: "ormqr",
      operands: [reads(a!), reads(tau!), reads(c!), writes(product!)],
      parameters: ormqrParameters.bytes({ ...sizes, reflectors, width, ...attributes, tile, team }),
      threadgroups: [Math.ceil(width / tile), batch],
      threadgroup: threadsOf(tile, team),
      threadgroupMemory: [bytesFor(rows * (strideFor(tile) + 1))],
    });
  },
};
