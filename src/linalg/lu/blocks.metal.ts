/** LU of matrices larger than threadgroup memory: three dispatches per block of columns, for any batch size. */
import type { Launched, TicketRange } from "../../backend/backend.ts";
import { launch, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { copyMetal } from "../../ops/copy/copy.metal.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { BLOCK, TILE_ROWS, TILE_THREADS } from "../metal.ts";
import { triangularParameters } from "../triangular/primitive.ts";
import { luPermutationParameters, luRowsParameters, luStepParameters } from "./primitive.ts";

const file = "linalg/lu_blocks.metal";

/** Columns per threadgroup of the kernel lu_beside, and threads per threadgroup of lu_panel. */
const SIDE = 64;
const PANEL_THREADS = 256;

const changes = (tensor: Tensor) => ({ tensor, access: "readwrite" }) as const;

/** Factorizes `a` into `lu`. */
export function factorizeBlocks(a: Tensor, lu: Tensor, pivots: Tensor, info: Tensor, pivot: boolean): TicketRange {
  const { batch, rows, columns } = matricesOf(a);
  const steps = Math.min(rows, columns);
  const launched: Launched[] = [
    copyMetal.run({ operation: "luFactor", inputs: [a], outputs: [lu], attributes: undefined }),
  ];
  for (let first = 0; first < steps; first += BLOCK) {
    const common = { file, parameters: luStepParameters.bytes({ rows, columns, first, pivot }) };
    const width = Math.min(BLOCK, steps - first);
    const [below, right] = [rows - first - width, columns - first - width];
    launched.push(
      launch({
        ...common,
        name: "lu_panel",
        operands: [changes(lu), changes(pivots), changes(info)],
        threadgroups: [batch],
        threadgroup: PANEL_THREADS,
      }),
    );
    if (columns > width)
      launched.push(
        launch({
          ...common,
          name: "lu_beside",
          operands: [changes(lu), reads(pivots)],
          threadgroups: [Math.ceil((columns - width) / SIDE), batch],
          threadgroup: SIDE,
        }),
      );
    if (below > 0 && right > 0)
      launched.push(
        launch({
          ...common,
          name: "lu_below",
          operands: [changes(lu)],
          threadgroups: [Math.ceil(right / BLOCK), Math.ceil(below / TILE_ROWS), batch],
          threadgroup: TILE_THREADS,
        }),
      );
  }
  return spanOf(launched)!;
}

/** Solves A X = B into `x`, or Aᵀ X = B if `adjoint`; without B, uses the identity. */
export function solveBlocks(
  lu: Tensor,
  pivots: Tensor,
  b: Tensor | undefined,
  x: Tensor,
  adjoint: boolean,
): TicketRange | null {
  if (x.size === 0) return null;
  const { batch, rows } = matricesOf(lu);
  using order = scratchTensor([batch, rows], "int32");
  using first = scratchTensor(x.shape, "float32");
  using second = scratchTensor(x.shape, "float32");
  const permuted = launch({
    file: "linalg/lu.metal",
    name: "lu_permutation",
    operands: [reads(pivots), writes(order)],
    parameters: luPermutationParameters.bytes({ batch, rows, pivots: rows, inverse: adjoint }),
    grid: [batch],
    threadgroup: 32,
  });
  const steps: [TicketRange, TicketRange, TicketRange] = adjoint
    ? [
        triangular(lu, b!, first, { upper: false, unitDiagonal: false, transposedA: true }),
        triangular(lu, first, second, { upper: true, unitDiagonal: true, transposedA: true }),
        orderRows(second, order, x),
      ]
    : [
        orderRows(b, order, first),
        triangular(lu, first, second, { upper: false, unitDiagonal: true, transposedA: false }),
        triangular(lu, second, x, { upper: true, unitDiagonal: false, transposedA: false }),
      ];
  return spanOf([permuted, ...steps]);
}

interface Triangle {
  readonly upper: boolean;
  readonly unitDiagonal: boolean;
  readonly transposedA: boolean;
}

function triangular(a: Tensor, b: Tensor, x: Tensor, triangle: Triangle): TicketRange {
  const sizes = matricesOf(b);
  return launch({
    file: "linalg/triangular_blocks.metal",
    name: "solve_triangular_blocks",
    operands: [reads(a), reads(b), writes(x)],
    parameters: triangularParameters.bytes({ ...sizes, ...triangle, transposedB: false }),
    threadgroups: [Math.ceil(sizes.columns / TILE_ROWS), sizes.batch],
    threadgroup: TILE_THREADS,
  });
}

function orderRows(b: Tensor | undefined, order: Tensor, x: Tensor): TicketRange {
  const { batch, rows, columns } = matricesOf(x);
  return launch({
    file,
    name: b ? "lu_rows" : "lu_unit_rows",
    operands: [...(b ? [reads(b)] : []), reads(order), writes(x)],
    parameters: luRowsParameters.bytes({ rows, columns }),
    grid: [columns, rows, batch],
    threadgroup: [32, 4, 1],
  });
}
