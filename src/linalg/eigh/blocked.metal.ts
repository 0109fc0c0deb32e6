import type { OperationCall, TicketRange } from "../../backend/backend.ts";
import { launch, type Operand, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type EighAttributes, eighBlockedParameters } from "./primitive.ts";

/** The maximum number of rows of a matrix: `MAX_ROWS` in kernels/linalg/eigh_blocked.metal. */
export const MAX_BLOCKED_SIZE = 512;

/** The number of encoded sweeps. Eight to ten are usual; sweeps with nothing to do return immediately. */
const SWEEPS = 16;
const BLOCK = 32;
const TILE = 2 * BLOCK;
const THREADS = 256;

const updates = (tensor: Tensor): Operand => ({ tensor, access: "readwrite" });

/** Runs Jacobi's method in blocks. The number of dispatches depends only on the size of the matrices. */
export function launchBlocked(call: OperationCall<EighAttributes>): TicketRange {
  const { inputs, outputs, attributes } = call;
  const [a] = inputs;
  const { upper, vectors } = attributes;
  const { batch, rows: size } = matricesOf(a);
  const blocks = 2 * Math.ceil(size / TILE);
  const pairs = blocks / 2;
  const rounds = SWEEPS * (blocks - 1);
  const rows = blocks * BLOCK;
  using work = scratchTensor([batch, rows, rows], "float32");
  using vt = scratchTensor(vectors ? [batch, rows, rows] : [1], "float32");
  using turns = scratchTensor([batch, pairs, TILE, TILE], "float32");
  using flags = scratchTensor([batch, rounds, pairs], "int32");
  using scales = scratchTensor([batch], "float32");
  using codes = scratchTensor([batch], "int32");
  using nothing = scratchTensor([1], "float32");
  const [eigenvalues, info, eigenvectors = nothing] = outputs;
  const start = (name: string, operands: readonly Operand[], groups: readonly number[], round = 0): TicketRange =>
    launch({
      file: "linalg/eigh_blocked.metal",
      name,
      operands,
      parameters: eighBlockedParameters.bytes({ batch, size, blocks, rounds, round, upper, vectors }),
      threadgroups: [...groups, batch] as [number, number],
      threadgroup: THREADS,
    });
  const tiles = (pairs * (pairs - 1)) / 2 + (vectors ? pairs * pairs : 0);
  return spanOf([
    start("eigh_prepare", [reads(a), ...[work, vt, scales, codes].map(writes)], []),
    ...Array.from({ length: rounds }, (_, round) => [
      start("eigh_solve", [updates(work), writes(turns), updates(flags)], [pairs], round),
      start("eigh_apply", [updates(work), reads(turns), reads(flags), updates(vt)], [tiles], round),
    ]).flat(),
    start(
      "eigh_finish",
      [...[work, vt, scales, codes, flags].map(reads), ...[eigenvalues, info, eigenvectors].map(writes)],
      [],
    ),
  ]);
}
