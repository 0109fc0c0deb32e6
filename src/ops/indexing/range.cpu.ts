import { ArgumentError, type OrchardError } from "../../core/errors.ts";
import { currentCapture } from "../../observe/capture.ts";
import { collapse } from "../../tensor/shape.ts";
import { distinct, type IndexRange, indexAt, indexError } from "./indices.ts";
import { findOutOfRangeCall } from "./primitive.ts";

const found = new Float64Array(1);

/** Checks indices on the cpu backend. @throws {ShapeError} `indexOutOfRange` for the first index out of range. */
export function checkRangeOnCpu(range: IndexRange): void {
  const { operation, size, except = 0 } = range;
  using index = distinct(range.index);
  const { dtype, offset, shape, strides } = index;
  findOutOfRangeCall(operation, { dtype, offset, size, except, nest: collapse(shape, [strides]) }, [index, found]);
  const position = found[0];
  if (position >= 0) throw indexError(range, position, indexAt(range, position));
}

/** Checks indices before a recorded call, so that a replay reports the outcome of the check instead of the call's. */
export function checkRangeIfRecorded(range: IndexRange): void {
  if (currentCapture() !== null) checkRangeOnCpu(range);
}

/** Returns the error of a call that checks indices itself. If it rejected an index, the error names that index. */
export function errorWithRange(error: OrchardError, range: IndexRange): unknown {
  if (!(error instanceof ArgumentError)) return error;
  try {
    checkRangeOnCpu(range);
    return error;
  } catch (found) {
    return found;
  }
}
