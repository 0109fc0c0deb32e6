/** The error for invalid offsets of bags. */
import { ShapeError } from "../../core/errors.ts";

/**
 * @param position the position of the first invalid offset: it is less than its predecessor, more than `total`, or the
 * first one and not 0
 */
export const offsetsError = (position: number, value: number | bigint | undefined, total: number): ShapeError =>
  new ShapeError(
    "embeddingBag",
    "offsetsOutOfOrder",
    `expected ascending offsets from 0 to at most ${total}, the number of indices, got ` +
      `${value ?? "a value that has since changed"} at [${position}]`,
  );
