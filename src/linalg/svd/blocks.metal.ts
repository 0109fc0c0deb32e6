import type { TicketRange } from "../../backend/backend.ts";
import { launch, type Operand, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type SvdAttributes, type SvdOutputs, svdBlocksParameters } from "./primitive.ts";

/** The limit of min(rows, columns): the number of dispatches grows with its square. */
export const MAX_BLOCKED_ROWS = 512;

/**
 * The number of encoded sweeps. About ten are usual; up to thirty were observed. Sweeps with nothing to do return
 * immediately.
 */
const SWEEPS = 40;
const LANES = 32;
/** `MOST_GROUPS` in kernels/linalg/svd_blocks.metal. */
const MOST_GROUPS = 16;
const MOST_BLOCK_ROWS = 32;
/** Floats of threadgroup memory that the kernel's static variables leave free. */
const ROOM = (32768 - 256) / 4;

const updates = (tensor: Tensor): Operand => ({ tensor, access: "readwrite" });

/** Rows per block, so that two blocks fit threadgroup memory, and the number of blocks, which is even. */
function blocksOf(small: number, pitch: number): { block: number; blocks: number } {
  const most = Math.min(MOST_BLOCK_ROWS, Math.floor(ROOM / (2 * pitch)));
  const blocks = 2 * Math.ceil(small / (2 * most));
  return { block: Math.ceil(small / blocks), blocks };
}

/** Runs one-sided Jacobi rotations in blocks. The number of dispatches depends only on the size of the matrices. */
export function launchBlocks(a: Tensor, { u, s, vh, info }: SvdOutputs, attributes: SvdAttributes): TicketRange {
  const { batch, rows, columns } = matricesOf(a);
  const [small, large] = [Math.min(rows, columns), Math.max(rows, columns)];
  const pitch = large + (attributes.vectors ? small : 0);
  const { block, blocks } = blocksOf(small, pitch);
  using work = scratchTensor([batch, small, pitch], "float32");
  using exponents = scratchTensor([batch], "int32");
  using states = scratchTensor([batch], "int32");
  using flags = scratchTensor([batch, blocks - 1, blocks / 2], "int32");
  const start = (
    name: string,
    operands: readonly Operand[],
    more: Partial<Parameters<typeof launch>[0]> = {},
    round = 0,
  ) =>
    launch({
      file: "linalg/svd_blocks.metal",
      name,
      operands,
      parameters: svdBlocksParameters.bytes({ batch, rows, columns, ...attributes, block, blocks, round }),
      threadgroups: [batch],
      threadgroup: MOST_GROUPS * LANES,
      ...more,
    });
  const rotate = (round: number): TicketRange =>
    start(
      "svd_round",
      [updates(work), updates(flags), reads(states)],
      {
        threadgroups: [blocks / 2, batch],
        threadgroup: Math.min(MOST_GROUPS, block) * LANES,
        threadgroupMemory: [Math.ceil((2 * block * pitch) / 4) * 16],
      },
      round,
    );
  const sweep = (): TicketRange[] => [
    ...Array.from({ length: blocks - 1 }, (_, round) => rotate(round)),
    start("svd_settle", [reads(flags), updates(states)]),
  ];
  return spanOf([
    start("svd_prepare", [reads(a), ...[work, exponents, states].map(writes)]),
    ...Array.from({ length: SWEEPS }, sweep).flat(),
    start("svd_finish", [updates(work), reads(exponents), reads(states), ...[u ?? s, s, vh ?? s, info].map(writes)]),
  ]);
}
