import type { MetalImplementation, OperationCall, TicketRange } from "../../backend/backend.ts";
import { launch, launchBatch, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { SERIAL } from "../metal.ts";
import { fasterOnCpu } from "../route.ts";
import { triangularMetal } from "../triangular/triangular.metal.ts";
import { applyBlocks, copyBlocks, factorBlocks, trianglesFor } from "./blocks.metal.ts";
import { bytesFor, strideFor, teamFor } from "./layout.metal.ts";
import { type LstsqAttributes, lstsqParameters } from "./primitive.ts";

const THREADGROUP_BYTES = 32768;
const LANES = 32;
const MOST_GROUPS = 8;

type Call = OperationCall<LstsqAttributes>;

/** The sizes of a system. */
interface Sizes {
  readonly rows: number;
  readonly columns: number;
}

/**
 * Solves least squares in threadgroup memory; taller matrices are first reduced to triangles by blocked reflections.
 */
export const lstsqMetal: MetalImplementation<LstsqAttributes, [Tensor, Tensor, ...Tensor[]]> = {
  unsupported(call) {
    const { batch, rows, columns } = matricesOf(call.inputs[0]);
    const width = lastElement(call.inputs[1].shape);
    const work = batch * rows * columns * (Math.min(rows, columns) + width);
    return noFloat64(call) ?? tooLarge(call) ?? fasterOnCpu("qr", !fits({ rows, columns }), work);
  },
  run(call) {
    const [a, b] = call.inputs;
    const sizes = matricesOf(a);
    if (fits(sizes)) return launchWhole(call, a, b, sizes);
    const { batch, columns } = sizes;
    using factors = scratchTensor(a.shape, "float32");
    using tau = scratchTensor([batch, columns], "float32");
    using triangles = trianglesFor(batch, columns);
    using sides = scratchTensor(b.shape, "float32");
    const blocks = { a: factors, tau, triangles };
    const reduced = [...factorBlocks(a, blocks), copyBlocks(b, sides), ...applyBlocks(blocks, sides, true)];
    const triangle = { rows: columns, columns };
    const solved = fits(triangle)
      ? launchWhole(call, factors, sides, triangle)
      : solveTriangle(call, factors, sides, sizes);
    return spanOf([...reduced, solved]);
  },
};

/**
 * Explains why neither a matrix nor its triangle fits threadgroup memory; undefined if one of them fits. Without
 * pivoting, a triangle of any size fits.
 */
function tooLarge({ inputs: [a], attributes: { isPivoted } }: Omit<Call, "outputs">): string | undefined {
  const { rows, columns } = matricesOf(a);
  if (fits({ rows, columns }) || (rows >= columns && (!isPivoted || fits({ rows: columns, columns }))))
    return undefined;
  const what =
    rows >= columns ? `the triangle of ${columns} rows that is pivoted` : "a matrix with more columns than rows";
  return `${what} must fit ${THREADGROUP_BYTES} bytes of threadgroup memory, got ${rows} x ${columns}`;
}

/** Floats for a matrix, for the scalars of its reflections and columns, for a vector per SIMD-group, and one more. */
const floatsOf = ({ rows, columns }: Sizes, groups: number): number =>
  rows * strideFor(columns) + 4 * Math.min(rows, columns) + columns + (groups + 1) * Math.max(rows, columns);

const bytesOf = (sizes: Sizes, groups: number): [system: number, order: number] => [
  bytesFor(floatsOf(sizes, groups)),
  bytesFor(sizes.columns + 1),
];

const fits = (sizes: Sizes, groups = 1): boolean =>
  bytesOf(sizes, groups).reduce((sum, bytes) => sum + bytes) <= THREADGROUP_BYTES;

/** SIMD-groups per threadgroup: one per column, as far as their vectors fit in memory. */
function groupsFor(sizes: Sizes): number {
  let groups = Math.max(1, Math.min(MOST_GROUPS, sizes.columns));
  while (groups > 1 && !fits(sizes, groups)) groups--;
  return groups;
}

/** Solves with matrices of `sizes`. If the matrices in `a` have more rows, it solves with their upper triangles. */
function launchWhole({ outputs, attributes }: Call, a: Tensor, b: Tensor, sizes: Sizes): TicketRange {
  const { batch, rows: aRows } = matricesOf(a);
  const { rows: bRows, columns: width } = matricesOf(b);
  const groups = groupsFor(sizes);
  const work = SERIAL * batch * sizes.rows * sizes.columns * (Math.min(sizes.rows, sizes.columns) + width);
  return launchBatch(batch, work, (count) => ({
    file: "linalg/lstsq.metal",
    name: "lstsq",
    operands: [reads(a), reads(b), ...outputs.map(writes)],
    parameters: lstsqParameters.bytes({
      batch: count,
      ...sizes,
      width,
      aRows,
      bRows,
      stride: strideFor(sizes.columns),
      team: teamFor(sizes.rows),
      isTriangle: aRows > sizes.rows,
      ...attributes,
    }),
    threadgroups: [count],
    threadgroup: groups * LANES,
    threadgroupMemory: bytesOf(sizes, groups),
  }));
}

/** Solves with the triangles of factors, assuming full rank. */
function solveTriangle({ operation, outputs, attributes }: Call, a: Tensor, b: Tensor, sizes: Sizes): TicketRange {
  const { batch } = matricesOf(a);
  const { columns } = sizes;
  const { rows: bRows, columns: width } = matricesOf(b);
  const [x, rank, info] = outputs;
  using triangle = scratchTensor([batch, columns, columns], "float32");
  using sides = scratchTensor([batch, columns, width], "float32");
  const taken = launch({
    file: "linalg/lstsq.metal",
    name: "take_triangle",
    operands: [reads(a), reads(b), ...[sides, triangle, rank, info].map(writes)],
    parameters: lstsqParameters.bytes({
      batch,
      rows: columns,
      columns,
      width,
      aRows: sizes.rows,
      bRows,
      stride: 0,
      team: 0,
      isTriangle: true,
      ...attributes,
    }),
    threadgroups: [batch],
    threadgroup: MOST_GROUPS * LANES,
  });
  const solved = triangularMetal.run({
    operation,
    inputs: [triangle, sides],
    outputs: [x],
    attributes: { upper: true, unitDiagonal: false },
  });
  return spanOf([taken, solved!]);
}
