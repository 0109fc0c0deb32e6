/** The options of `rope` and their checks. */

import { lastElement } from "../../core/collections.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { flag, someNumber } from "../../core/kinds.ts";
import { type Kind, named } from "../../core/parameters.ts";
import { keysOf } from "../../core/records.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkFloat } from "../creation/create.ts";
import { aScaling, type RopeScaling } from "./frequencies.ts";
import { checkTables } from "./tables.ts";

/** Options of {@link rope}. */
export interface RopeOptions {
  /** The position of the first row, or a number added to `positions`. A whole number. Default 0. */
  offset?: number | undefined;
  /** The position of each row: [seq], or [batch, seq] with the first axis of x as batch. Default: 0, 1, 2, …. */
  positions?: Tensor<"int64" | "int32"> | undefined;
  /** Pair i rotates by base^(−2i/dim) radians per position, so the first pair by 1 radian. Default 10,000. */
  base?: number | undefined;
  /**
   * If true, the pairs are adjacent elements (2i, 2i + 1), as in GPT-J and Llama's original code. If false, the pairs
   * are (i, i + dim/2), as in GPT-NeoX and Hugging Face's models. Default false.
   */
  interleaved?: boolean | undefined;
  /**
   * The number of elements of a row that rotate, starting with the first; the others are unchanged. An even number.
   * Default: all.
   */
  dim?: number | undefined;
  /** The scaling for contexts longer than those that the model was trained on. Default: none. */
  scaling?: RopeScaling | undefined;
  /**
   * The cosines of each row's pairs: [seq, dim / 2], or [batch, seq, dim / 2] with the first axis of x as batch.
   * Requires `sin`, and replaces `offset`, `positions`, `base` and `scaling`. It may require a gradient.
   */
  cos?: Tensor | undefined;
  /** The sines of each row's pairs, in the shape of `cos`. */
  sin?: Tensor | undefined;
}

/** @internal Kinds and defaults of {@link RopeOptions}. */
export const ropeOptions = {
  offset: named(someNumber, 0),
  positions: named(aTensor as Kind<Tensor<"int64" | "int32">>),
  base: named(someNumber, 10_000),
  interleaved: named(flag, false),
  dim: named(someNumber),
  scaling: named(aScaling),
  cos: named(aTensor),
  sin: named(aTensor),
} as const;

/**
 * Checks the operands of rope. @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError} @throws
 * {DisposedError}
 */
export function checkRope(x: Tensor, options: RopeOptions): void {
  checkFloat("rope", x.dtype);
  if (x.rank < 2)
    throw new ShapeError("rope", "wrongRank", `expected x to be [..., seq, headDim], got ${x.describe()}`);
  const { offset = 0, positions, base = 10_000 } = options;
  checkDim(x, options);
  if (!Number.isSafeInteger(offset))
    throw new ArgumentError("rope", "invalidOffset", `expected offset to be a whole number, got ${String(offset)}`);
  if (!(base > 0 && Number.isFinite(base)))
    throw new ArgumentError("rope", "invalidBase", `expected base to be a number above 0, got ${String(base)}`);
  if (positions) checkPositions(x, positions);
  if (options.cos || options.sin) checkTableOptions(x, options);
}

function checkTableOptions(x: Tensor, options: RopeOptions): void {
  const { cos, sin, dim = lastElement(x.shape) } = options;
  if (!cos || !sin)
    throw new ArgumentError("rope", "missingTable", `expected cos and sin together, got ${cos ? "cos" : "sin"} alone`);
  const defaults = { offset: 0, positions: undefined, base: 10_000, scaling: undefined };
  const beside = keysOf(defaults).find((name) => options[name] !== defaults[name]);
  if (beside)
    throw new ArgumentError(
      "rope",
      "optionsConflict",
      `expected no ${beside} with cos and sin, which define the angle of each row; select their rows with indexSelect`,
    );
  checkTables(x, { cos, sin }, dim);
}

function checkDim(x: Tensor, { dim = lastElement(x.shape) }: RopeOptions): void {
  const most = lastElement(x.shape);
  if (Number.isInteger(dim) && dim >= 0 && dim % 2 === 0 && dim <= most) return;
  throw new ShapeError(
    "rope",
    "invalidDim",
    `expected dim to be an even number up to ${most} for x ${x.describe()}, since elements rotate in pairs, got ${dim}`,
  );
}

function checkPositions(x: Tensor, positions: Tensor): void {
  positions.checkAlive("rope");
  if (positions.dtype !== "int64" && positions.dtype !== "int32")
    throw new DTypeError("rope", "notAPosition", `expected positions to be int64 or int32, got ${positions.dtype}`);
  const [seq] = x.shape.slice(-2);
  const [batch] = x.shape;
  const fits =
    positions.shape.at(-1) === seq &&
    (positions.rank === 1 || (positions.rank === 2 && x.rank > 2 && positions.shape[0] === batch));
  if (fits) return;
  throw new ShapeError(
    "rope",
    "shapesDiffer",
    `expected positions to be [seq] or [batch, seq], ${formatShape([seq])}` +
      `${x.rank > 2 ? ` or ${formatShape([batch, seq])}` : ""} for x ${x.describe()}, got ${positions.describe()}`,
  );
}
