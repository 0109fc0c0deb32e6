import { toIntegers } from "../../backend/reference/elements.ts";
import { distinct, type IndexRange, indexError, isInRange } from "./indices.ts";

/** Checks indices. @throws {ShapeError} `indexOutOfRange` for the first index out of range. */
export function checkRange(range: IndexRange): void {
  const index = distinct(range.index);
  const indices = toIntegers(index);
  index.dispose();
  const position = indices.findIndex((value) => !isInRange(range, value));
  if (position >= 0) throw indexError(range, position, indices[position]);
}
