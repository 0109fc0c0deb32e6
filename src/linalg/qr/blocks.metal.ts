/**
 * Reflections of matrices larger than threadgroup memory: a fixed number of dispatches per block of columns, for any
 * batch size.
 */

import type { TicketRange } from "../../backend/backend.ts";
import { launch, type Operand, reads, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { lastElement } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { BLOCK } from "../metal.ts";
import { qrStepParameters } from "./primitive.ts";

const PANEL_THREADS = 8 * 32;
const THREADS = 4 * 32;

const changes = (tensor: Tensor): Operand => ({ tensor, access: "readwrite" });
const blocksOf = (count: number): number[] => Array.from({ length: Math.ceil(count / BLOCK) }, (_, at) => at * BLOCK);

/** Allocates the triangles T of the blocks of `count` reflections. */
export const trianglesFor = (batch: number, count: number): Tensor<"float32"> =>
  scratchTensor([batch, Math.max(1, Math.ceil(count / BLOCK)), BLOCK, BLOCK], "float32");

/** The vectors of reflections, tau, and the matrices T of blocks of reflections. */
export interface Blocks {
  readonly a: Tensor;
  readonly tau: Tensor;
  readonly triangles: Tensor;
}

const parametersOf = (
  { a, tau }: Pick<Blocks, "a" | "tau">,
  step: {
    readonly first?: number;
    readonly width?: number;
    readonly begin?: number;
    readonly transpose?: boolean;
  } = {},
): Uint8Array => {
  const { rows, columns } = matricesOf(a);
  return qrStepParameters.bytes({
    rows,
    columns,
    count: lastElement(tau.shape),
    first: 0,
    width: 0,
    begin: 0,
    transpose: false,
    ...step,
  });
};

const run = (
  name: string,
  operands: readonly Operand[],
  parameters: Uint8Array,
  grid: readonly number[],
): TicketRange =>
  launch({
    file: "linalg/qr_blocks.metal",
    name,
    operands,
    parameters,
    grid: tupleOf(grid, 3),
    threadgroup: [32, 4, 1],
  });

/** Copies `from` to `a`, and factorizes it there. */
export function factorBlocks(from: Tensor, blocks: Blocks): TicketRange[] {
  const { batch, rows, columns } = matricesOf(from);
  const { a, tau } = blocks;
  const copied = run("copy_matrix", [reads(from), writes(a)], parametersOf(blocks), [columns, rows, batch]);
  const count = lastElement(tau.shape);
  const steps = blocksOf(count).flatMap((first) => {
    const panel = launch({
      file: "linalg/qr_blocks.metal",
      name: "factor_panel",
      operands: [changes(a), changes(tau)],
      parameters: parametersOf(blocks, { first }),
      threadgroups: [batch],
      threadgroup: PANEL_THREADS,
    });
    const step = { first, width: columns, begin: Math.min(first + BLOCK, count), transpose: true };
    return [panel, formTriangles(blocks, first, 1), ...applyOne(blocks, a, step)];
  });
  return [copied, ...steps];
}

/** Forms T of `count` blocks from `first` on; of all blocks by default. */
export function formTriangles(
  blocks: Blocks,
  first = 0,
  count = blocksOf(lastElement(blocks.tau.shape)).length,
): TicketRange {
  return launch({
    file: "linalg/qr_blocks.metal",
    name: "form_triangles",
    operands: [reads(blocks.a), reads(blocks.tau), changes(blocks.triangles)],
    parameters: parametersOf(blocks, { first }),
    threadgroups: [count, matricesOf(blocks.a).batch],
    threadgroup: THREADS,
  });
}

interface Step {
  readonly first: number;
  readonly width: number;
  readonly begin: number;
  readonly transpose: boolean;
}

function applyOne(blocks: Blocks, c: Tensor, step: Step): TicketRange[] {
  if (step.begin >= step.width) return [];
  return [
    launch({
      file: "linalg/qr_blocks.metal",
      name: "apply_block",
      operands: [reads(blocks.a), reads(blocks.triangles), changes(c)],
      parameters: parametersOf(blocks, step),
      threadgroups: [Math.ceil((step.width - step.begin) / BLOCK), matricesOf(blocks.a).batch],
      threadgroup: THREADS,
    }),
  ];
}

/** Replaces C by Q C or Qᵀ C; `isUnit` if C is a unit matrix, which saves work. */
export function applyBlocks(blocks: Blocks, c: Tensor, transpose: boolean, isUnit = false): TicketRange[] {
  const width = lastElement(c.shape);
  const firsts = blocksOf(lastElement(blocks.tau.shape));
  return (transpose ? firsts : firsts.reverse()).flatMap((first) =>
    applyOne(blocks, c, { first, width, begin: isUnit ? first : 0, transpose }),
  );
}

/** Forms the first columns of Q. */
export function formBlocks(blocks: Blocks, q: Tensor): TicketRange[] {
  const { batch, rows, columns: width } = matricesOf(q);
  const unit = run("unit_matrix", [writes(q)], parametersOf(blocks, { width }), [width, rows, batch]);
  return [unit, ...applyBlocks(blocks, q, false, true)];
}

/** Copies C to `to`. */
export function copyBlocks(c: Tensor, to: Tensor): TicketRange {
  const { batch, rows, columns } = matricesOf(c);
  const parameters = qrStepParameters.bytes({
    rows,
    columns,
    count: 0,
    first: 0,
    width: 0,
    begin: 0,
    transpose: false,
  });
  return run("copy_matrix", [reads(c), writes(to)], parameters, [columns, rows, batch]);
}

/** Extracts R, and flips the signs of Q so that the diagonal of R is at least 0. */
export function finishBlocks(blocks: Blocks, q: Tensor, r: Tensor): TicketRange[] {
  const { batch, rows: inner, columns } = matricesOf(r);
  const upper = run("take_upper", [reads(blocks.a), writes(r)], parametersOf(blocks, { width: inner }), [
    columns,
    inner,
    batch,
  ]);
  if (q.size === 0) return [upper];
  const { rows, columns: width } = matricesOf(q);
  return [
    upper,
    run("change_signs", [reads(blocks.a), changes(q)], parametersOf(blocks, { width }), [width, rows, batch]),
  ];
}
