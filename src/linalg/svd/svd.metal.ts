import type { MetalImplementation } from "../../backend/backend.ts";
import { noFloat64 } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { launchBlocks, MAX_BLOCKED_ROWS } from "./blocks.metal.ts";
import { type SvdAttributes, svdOutputs } from "./primitive.ts";
import { launchByTriangle } from "./tall.metal.ts";
import { fitsThreadgroup, launchWhole } from "./whole.metal.ts";

export const svdMetal: MetalImplementation<SvdAttributes, [Tensor]> = {
  unsupported(call) {
    const [a] = call.inputs;
    const { rows, columns } = matricesOf(a);
    const isLarge = !fitsThreadgroup({ rows, columns }, call.attributes);
    return noFloat64(call) ?? tooLarge(rows, columns) ?? fasterOnCpu("svd", isLarge, factorWork(a));
  },
  run({ inputs: [a], outputs, attributes }) {
    const results = svdOutputs(outputs, attributes);
    if (fitsThreadgroup(matricesOf(a), attributes)) return launchWhole(a, results, attributes);
    return launchByTriangle(a, results, attributes, (triangle, inner, wanted) =>
      (fitsThreadgroup(matricesOf(triangle), wanted) ? launchWhole : launchBlocks)(triangle, inner, wanted),
    );
  },
};

/** Why a matrix is computed on another backend. */
const tooLarge = (rows: number, columns: number): string | undefined =>
  Math.min(rows, columns) <= MAX_BLOCKED_ROWS
    ? undefined
    : `the kernels support at most ${MAX_BLOCKED_ROWS} rows or columns, got ${rows} x ${columns}: the cpu ` +
      "is faster for larger matrices";
