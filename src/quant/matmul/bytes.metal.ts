/**
 * Products of bytes on Metal: x is rounded to 8 bits once, and tiles of bytes are multiplied. Compared with
 * `native/cpu/quant/fast.h`, levels, scales and the sums of 32 products are equal; the sum of a row has another order.
 */
import type { TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { bytesOf, type DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { PART } from "../metal.ts";
import type { RowsAttributes } from "./attributes.ts";
import { constantsOf, kindOf, operandsOf, type ProductLaunch, parametersOf, workOf } from "./product_launch.ts";
import { byteTileFor, packedBytes, runParts, tileFor, vector } from "./tiles.ts";

/** Rounded rows of x, in the layout of `kernels/quant/round.metal`. Dispose of them once all products are launched. */
export interface RoundedRows extends Disposable {
  /** Levels, scales, and sums of levels. */
  readonly parts: readonly [Tensor, Tensor, Tensor];
  readonly launched: TicketRange;
}

const PART_BYTES = 4 + 4; // a scale, and the sums of both halves

/** Returns why products of bytes do not move less device memory; undefined if they do. */
export function whyExact(attributes: RowsAttributes, dtype: DType): string | undefined {
  const { rows, columns, count } = attributes;
  if (count <= vector.mostCount) return `${vector.mostCount} or fewer rows of x are too few`;
  if (rows === 0 || columns === 0) return "the matrix is empty";
  // For each value of x. Gated products have twice the rows, but use the same kernel as two products would.
  const exact = Math.ceil(rows / tileFor(rows, count).columns) * bytesOf(dtype);
  const part = 1 + PART_BYTES / PART;
  const rounding = bytesOf(dtype) + part;
  return rounding + Math.ceil(rows / byteTileFor(rows, count).columns) * part < exact
    ? undefined
    : "with so few rows of weights, rounding x moves more memory than bytes save";
}

/** Rounds the rows of x. */
export function roundRows(product: ProductLaunch): RoundedRows {
  const { x, attributes } = product;
  const { columns, count } = attributes;
  const parts = [
    scratchTensor([columns / PART, count, PART], "int8"),
    scratchTensor([columns / PART, count], "float32"),
    scratchTensor([columns / PART, count], "int32"), // two int16
  ] as const;
  const launched = launch({
    file: "quant/round.metal",
    name: `quant_round_${metalTypeOf(x.dtype)}`,
    operands: [reads(x), ...parts.map(writes)],
    parameters: parametersOf(product, 0),
    grid: [columns, count],
    threadgroup: 256,
  });
  return {
    parts,
    launched,
    [Symbol.dispose]() {
      for (const part of parts) part.dispose();
    },
  };
}

/** Multiplies bytes; rounds x first unless `given` has it. */
export function launchBytes(product: ProductLaunch, given?: RoundedRows): TicketRange {
  if (given) return spanOf([given.launched, launchTiles(product, given)]);
  using rounded = roundRows(product);
  return spanOf([rounded.launched, launchTiles(product, rounded)]);
}

function launchTiles(product: ProductLaunch, { parts }: RoundedRows): TicketRange {
  const { attributes, x, matrices } = product;
  const { rows, count } = attributes;
  const tile = byteTileFor(rows * matrices.length, count);
  const run = runParts(attributes, tile);
  return launch({
    file: "quant/bytes.metal",
    name: `${kindOf(product)}_bytes_${metalTypeOf(x.dtype)}_${tile.name}`,
    constants: constantsOf(product, run, run),
    operands: operandsOf(product, parts),
    parameters: parametersOf(product, 0),
    threadgroups: [Math.ceil((rows * matrices.length) / tile.columns), Math.ceil(count / tile.rows)],
    threadgroup: tile.threads,
    threadgroupMemory: [packedBytes(attributes, tile.columns, run)],
    work: workOf(product),
  });
}
