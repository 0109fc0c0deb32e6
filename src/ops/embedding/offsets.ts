/** The error of offsets that begin no bags. */
import { ShapeError } from "../../core/errors.ts";

/**
 * @param position the first that is less than the one before it or more than `total`, or the first of all where it is
 * not 0
 */
export const offsetsError = (position: number, value: number | bigint | undefined, total: number): ShapeError =>
  new ShapeError(
    "embeddingBag",
    "offsetsOutOfOrder",
    `expected offsets that begin with 0 and ascend to at most ${total}, the number of indices, got ` +
      `${value ?? "another one (changed since)"} at [${position}]`,
  );
