/** Rotary embeddings with cosines and sines from the caller, composed of differentiable operations. */
import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { cat, stack } from "../join/cat.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, select } from "../view/slice.ts";

/** Cosines and sines of each row's pairs: [seq, pairs], or [batch, seq, pairs] with the first axis of x as batch. */
export interface RopeTables {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/** Checks tables of cosines and sines. @throws {ShapeError} @throws {DTypeError} @throws {DisposedError} */
export function checkTables(x: Tensor, { cos, sin }: RopeTables, dim: number): void {
  const row = [x.shape.at(-2)!, dim / 2];
  const expected = x.rank > 2 ? [row, [x.shape[0], ...row]] : [row];
  for (const [name, table] of Object.entries({ cos, sin })) {
    table.checkAlive("rope");
    if (!isFloat(table.dtype))
      throw new DTypeError("rope", "notAFloat", `expected ${name} to have a float dtype, got ${table.describe()}`);
    if (!expected.some((shape) => sameShape(shape, table.shape)))
      throw new ShapeError(
        "rope",
        "shapesDiffer",
        `expected ${name} to be [seq, pairs] or [batch, seq, pairs], ${expected.map(formatShape).join(" or ")} for x ` +
          `${x.describe()}, got ${table.describe()}`,
      );
  }
}

/**
 * Rotates each pair (a, b) to (a · cos − b · sin, a · sin + b · cos), rounded once. Elements after the pairs are
 * unchanged.
 */
export function rotatedByTables<D extends DType>(
  x: Tensor<D>,
  tables: RopeTables,
  { dim, interleaved }: { readonly dim: number; readonly interleaved: boolean },
): Tensor<D> {
  const pairs = dim / 2;
  const part = toDType(narrow(x, -1, 0, dim), accumulationDType(x.dtype));
  const [a, b] = interleaved
    ? [0, 1].map((at) => select(reshape(part, [...part.shape.slice(0, -1), pairs, 2]), -1, at))
    : [0, pairs].map((start) => narrow(part, -1, start, pairs));
  const [cos, sin] = [tables.cos, tables.sin].map((table) => spread(toDType(table, part.dtype), x.rank));
  const rotated = [sub(mul(a, cos), mul(b, sin)), add(mul(a, sin), mul(b, cos))];
  const result = interleaved ? reshape(stack(rotated, { dim: -1 }), part.shape) : cat(rotated, { dim: -1 });
  const rounded = toDType(result, x.dtype);
  const size = lastElement(x.shape);
  return size === dim ? rounded : cat([rounded, narrow(x, -1, dim, size - dim)], { dim: -1 });
}

/** Reshapes a table with a batch so that it broadcasts with `rank` axes, the first of which is the batch. */
const spread = (table: Tensor, rank: number): Tensor =>
  table.rank === 2
    ? table
    : reshape(table, [table.shape[0], ...new Array<number>(rank - 3).fill(1), ...table.shape.slice(1)]);
