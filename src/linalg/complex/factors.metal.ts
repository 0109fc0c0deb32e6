/** Complex factorizations on the device: one threadgroup per matrix; see kernels/linalg/complex_factor.metal. */
import type { MetalImplementation } from "../../backend/backend.ts";
import type { ValuesOf } from "../../backend/fields.ts";
import { launchBatch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { LargeOperation } from "../crossover.ts";
import { MAX_SIZE, SERIAL } from "../metal.ts";
import { fasterOnCpu } from "../route.ts";
import { choleskyFields, luFields, qrFields, triangularFields } from "./fields.ts";

const choleskyParameters = struct("ComplexCholesky", choleskyFields);
const luParameters = struct("ComplexLu", luFields);
const triangularParameters = struct("ComplexTriangular", triangularFields);
const qrParameters = struct("ComplexQr", qrFields);

const file = "linalg/complex_factor.metal";

/** Columns of B per threadgroup: COLUMNS in the kernel. */
const COLUMNS = 32;

/** A complex multiplication and addition takes four real ones. */
const COMPLEX = 4;

interface Sizes {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
}

const workOf = ({ batch, rows, columns }: Sizes): number =>
  COMPLEX * batch * rows * columns * Math.max(1, Math.min(rows, columns));

/** Threads of a threadgroup: about four elements per thread or more, at most 256. */
const threadsOf = ({ rows, columns }: Sizes): number =>
  Math.min(256, Math.max(32, Math.ceil((rows * columns) / 128) * 32));

/** Returns why another backend computes these matrices. */
function elsewhere(
  operation: LargeOperation,
  call: { readonly inputs: readonly Tensor[] },
  sizes: Sizes,
  work: number,
): string | undefined {
  return noFloat64(call) ?? fasterOnCpu(operation, Math.max(sizes.rows, sizes.columns) > MAX_SIZE, work);
}

export const choleskyMetal: MetalImplementation<ValuesOf<typeof choleskyFields>> = {
  unsupported: (call) => elsewhere("cholesky", call, call.attributes, workOf(call.attributes)),
  run({ inputs: [a], outputs: [factor, info], attributes }) {
    return launchBatch(attributes.batch, SERIAL * workOf(attributes), (batch) => ({
      file,
      name: "complex_cholesky",
      operands: [reads(a), writes(factor), writes(info)],
      parameters: choleskyParameters.bytes({ ...attributes, batch }),
      threadgroups: [batch],
      threadgroup: threadsOf(attributes),
    }));
  },
};

export const luMetal: MetalImplementation<ValuesOf<typeof luFields>> = {
  unsupported: (call) => elsewhere("lu", call, call.attributes, workOf(call.attributes)),
  run({ inputs: [a], outputs: [lu, pivots, info], attributes }) {
    return launchBatch(attributes.batch, SERIAL * workOf(attributes), (batch) => ({
      file,
      name: "complex_lu",
      operands: [reads(a), writes(lu), writes(pivots), writes(info)],
      parameters: luParameters.bytes({ ...attributes, batch }),
      threadgroups: [batch],
      threadgroup: threadsOf(attributes),
    }));
  },
};

export const triangularMetal: MetalImplementation<ValuesOf<typeof triangularFields>> = {
  unsupported(call) {
    const { batch, rows, columns } = call.attributes;
    const square = { batch, rows, columns: rows };
    return elsewhere("solveTriangular", call, square, COMPLEX * batch * rows ** 2 * columns);
  },
  run({ inputs: [a, b], outputs: [x], attributes }) {
    const { batch: all, rows, columns } = attributes;
    return launchBatch(all, SERIAL * COMPLEX * all * rows ** 2 * columns, (batch) => ({
      file,
      name: "complex_triangular",
      operands: [reads(a), reads(b), writes(x)],
      parameters: triangularParameters.bytes({ ...attributes, batch }),
      threadgroups: [Math.ceil(columns / COLUMNS), batch],
      threadgroup: threadsOf({ batch, rows, columns: COLUMNS }),
    }));
  },
};

export const qrMetal: MetalImplementation<ValuesOf<typeof qrFields>> = {
  unsupported: (call) => elsewhere("qr", call, call.attributes, workOf(call.attributes)),
  run({ inputs: [a], outputs: [q, r], attributes }) {
    const { batch: all, rows, columns, width } = attributes;
    const elements = (columns + width) * rows + Math.min(rows, columns);
    using work: Tensor = scratchTensor([all, Math.max(1, elements), 2], "float32");
    const size = { batch: all, rows, columns: Math.max(columns, width) };
    return launchBatch(all, SERIAL * workOf(size), (batch) => ({
      file: "linalg/complex_qr.metal",
      name: "complex_qr",
      operands: [reads(a), { tensor: work, access: "readwrite" }, writes(q), writes(r)],
      parameters: qrParameters.bytes({ ...attributes, batch }),
      threadgroups: [batch],
      threadgroup: threadsOf(size),
    }));
  },
};
