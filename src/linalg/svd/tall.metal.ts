/**
 * Singular value decomposition of large matrices: a blocked QR factorization, then the decomposition of the triangle.
 */
import type { TicketRange } from "../../backend/backend.ts";
import { launch, type Operand, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { applyBlocks, type Blocks, factorBlocks, trianglesFor } from "../qr/blocks.metal.ts";
import { type SvdAttributes, type SvdOutputs, svdSignsParameters, svdTallParameters } from "./primitive.ts";

const LANES = 32;
/** `MOST_COLUMNS` and `GROUPS` in kernels/linalg/svd_tall.metal. */
const TAKE_THREADS = 16 * LANES;
const SIGN_THREADS = 8 * LANES;
const TILE = [32, 4, 1] as const;

/** The sizes that all launches share; the vectors that Q is applied to are large × width. */
interface Problem {
  readonly batch: number;
  readonly large: number;
  readonly small: number;
  readonly width: number;
  readonly isTall: boolean;
}

/** Decomposes square matrices. */
type Decompose = (a: Tensor, results: SvdOutputs, attributes: SvdAttributes) => TicketRange;

const updates = (tensor: Tensor): Operand => ({ tensor, access: "readwrite" });

/** One launch: a thread per element of `grid`, or a threadgroup per matrix without one. */
const start = (
  problem: Problem,
  name: string,
  operands: readonly Operand[],
  grid: readonly [number, number, number] | undefined,
): TicketRange =>
  launch({
    file: "linalg/svd_tall.metal",
    name,
    operands,
    parameters: svdTallParameters.bytes(problem),
    ...(grid ? { grid, threadgroup: TILE } : { threadgroups: [problem.batch], threadgroup: TAKE_THREADS }),
  });

/** Decomposes matrices of any shape through a square triangular factor of their smaller size. */
export function launchByTriangle(
  a: Tensor,
  results: SvdOutputs,
  { vectors, full }: SvdAttributes,
  decompose: Decompose,
): TicketRange {
  const { batch, rows, columns } = matricesOf(a);
  const [small, large, isTall] = [Math.min(rows, columns), Math.max(rows, columns), rows >= columns];
  const problem = { batch, large, small, width: full ? large : small, isTall };
  using taken = scratchTensor([batch, large, small], "float32");
  using factors = scratchTensor([batch, large, small], "float32");
  using tau = scratchTensor([batch, small], "float32");
  using triangles = trianglesFor(batch, small);
  using lower = scratchTensor([batch, small, small], "float32");
  using exponents = scratchTensor([batch], "int32");
  using places = scratchTensor([batch, small], "int32");
  using u = scratchTensor(vectors ? [batch, small, small] : [1], "float32");
  using vh = scratchTensor(vectors ? [batch, small, small] : [1], "float32");
  const blocks = { a: factors, tau, triangles };
  const { s, info } = results;
  const inner = vectors ? { u, s, vh, info } : { u: undefined, s, vh: undefined, info };
  return spanOf([
    start(problem, "svd_take", [reads(a), ...[taken, exponents, places].map(writes)], undefined),
    ...factorBlocks(taken, blocks),
    start(problem, "svd_triangle", [reads(factors), writes(lower)], [small, small, batch]),
    decompose(lower, inner, { vectors, full: false }),
    ...(results.u && results.vh ? placeVectors(problem, blocks, { u, vh, places }, results.u, results.vh) : []),
    start(problem, "svd_scale", [updates(s), reads(exponents)], [small, batch, 1]),
  ]);
}

/** The vectors of a triangle, and the permutation of the rows of U. */
interface Inner {
  readonly u: Tensor;
  readonly vh: Tensor;
  readonly places: Tensor;
}

/** Computes P U and Q V, with the signs that U of A determines. */
function placeVectors(problem: Problem, blocks: Blocks, inner: Inner, u: Tensor, vh: Tensor): TicketRange[] {
  const { batch, large, small, width, isTall } = problem;
  const place = (to: Tensor): TicketRange =>
    start(problem, "svd_place", [reads(inner.u), writes(to), reads(inner.places)], [small, small, batch]);
  const apply = (to: Tensor): TicketRange[] => [
    start(problem, "svd_embed", [reads(inner.vh), writes(to)], [width, large, batch]),
    ...applyBlocks(blocks, to, false),
  ];
  if (isTall) return [place(vh), ...apply(u), turnSigns(u, vh)];
  using v = scratchTensor([batch, large, width], "float32");
  return [
    place(u),
    ...apply(v),
    ...(width > small ? [turnSigns(v, v, small)] : []),
    start(problem, "svd_transpose", [reads(v), writes(vh)], [large, width, batch]),
    turnSigns(u, vh),
  ];
}

/**
 * Chooses the signs of the columns of `c` from `first` on. The rows of `others` get the same signs, unless `others` is
 * `c` itself.
 */
function turnSigns(c: Tensor, others: Tensor, first = 0): TicketRange {
  const { batch, rows, columns } = matricesOf(c);
  const { rows: all, columns: length } = matricesOf(others);
  const partners = c === others ? 0 : Math.min(columns, all);
  return launch({
    file: "linalg/svd_tall.metal",
    name: "svd_turn_signs",
    operands: c === others ? [updates(c), updates(c)] : [updates(c), updates(others)],
    parameters: svdSignsParameters.bytes({ rows, columns, first, partners, length, all }),
    threadgroups: [Math.ceil((columns - first) / LANES), batch],
    threadgroup: SIGN_THREADS,
  });
}
