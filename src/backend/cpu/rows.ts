/**
 * Calls functions of the cpu dylib that process rows: one call does the work of many, divided among the threads. A row
 * has a block of named fields and operands, like a {@link cpuCall}.
 */
import { ptr } from "bun:ffi";
import { type Capture, currentCapture } from "../../observe/capture.ts";
import type { Field, ValuesOf } from "../fields.ts";
import { bytesOf, type CpuCallDescription, type CpuOperand, describe, LEFT_OUT, ordinalOf } from "./call.ts";
import { cpuLibrary } from "./loader.ts";
import { errorOf } from "./status.ts";
import { nativeOrdinals } from "./tables.ts";

/** The values and operands of a row. */
export interface CpuRow<Values> {
  readonly values: Values;
  readonly operands: readonly CpuOperand[];
}

/**
 * Runs the function on all rows. All rows are checked before any result is written.
 *
 * @param operation the caller's operation, for errors, which count rows from 0
 * @throws {OrchardError} the error of the dylib's status.
 */
export interface CpuRowsCall<Values> {
  (operation: string, rows: readonly CpuRow<Values>[]): void;
  readonly description: CpuCallDescription;
}

/** Keeps the operands' memory alive while native code has only their addresses. */
let held: readonly NodeJS.TypedArray[] = [];

/**
 * Describes a function of the cpu dylib that processes rows (`ORCHARD_ROWS_FUNCTION` in C++): the fields of a row's
 * block in order, and its operands.
 *
 * @example
 * const call = cpuRowsCall("update", { size: whole }, ["before", "after"]);
 * call("SGD", [{ values: { size: 3 }, operands: [x, x] }, { values: { size: 5 }, operands: [y, y] }]);
 */
export function cpuRowsCall<Fields extends Readonly<Record<string, Field<never>>>>(
  name: string,
  fields: Fields,
  operands: readonly string[],
): CpuRowsCall<ValuesOf<Fields>> {
  const description = describe(name, fields, operands);
  let [blocks, addresses] = [new Float64Array(), new Float64Array()];
  let write: WriteRow | undefined;
  const run = (rows: readonly CpuRow<ValuesOf<Fields>>[], ordinal: number): number => {
    write ??= compileRow(description);
    const stride = description.length + operands.length;
    // Must come first, since accessing a device's memory may recompute an operation and use this call recursively.
    held = rows.flatMap((row) => row.operands.map((operand) => bytesOf(operand, leftOut)));
    try {
      if (blocks.length < rows.length * stride) {
        blocks = new Float64Array(rows.length * stride);
        addresses = new Float64Array(rows.length * operands.length);
      }
      for (const [at, { values }] of rows.entries()) write(blocks, at * stride, values);
      for (const [at, bytes] of held.entries()) {
        const row = Math.floor(at / operands.length);
        const isThere = bytes !== leftOut;
        addresses[at] = isThere && bytes.byteLength > 0 ? ptr(bytes) : 0;
        blocks[row * stride + description.length + (at % operands.length)] = isThere ? bytes.byteLength : LEFT_OUT;
      }
      const { native } = cpuLibrary();
      return native.orchard_cpu_run_rows(ordinal, blocks, rows.length * stride * 8, rows.length, addresses);
    } finally {
      held = [];
    }
  };
  const call = (operation: string, rows: readonly CpuRow<ValuesOf<Fields>>[]): void => {
    const ordinal = ordinalOf(description);
    const capture = currentCapture();
    const status = capture === null ? run(rows, ordinal) : recorded(capture, rows, ordinal);
    if (status !== 0) throw errorOf(cpuLibrary().native, status, operation, operands);
  };
  const recorded = (into: Capture, rows: readonly CpuRow<ValuesOf<Fields>>[], ordinal: number): number =>
    into.call(
      {
        description,
        ordinal,
        rows: rows.length,
        values: rows.map(({ values }) => values),
        operands: rows.flatMap((row) => row.operands),
      },
      () => run(rows, ordinal),
      () => blocks,
    );
  return Object.assign(call, { description });
}

/** Replaces an omitted operand. */
const leftOut = new Float64Array();

/** Writes the fields of a row. */
type WriteRow = (blocks: Float64Array, at: number, values: unknown) => void;

/** Compiled like a {@link cpuCall}, so that fields need no loop. */
function compileRow({ fields }: CpuCallDescription): WriteRow {
  const writes = fields.map(
    ({ name, offset }, index) => `write${index}(blocks, at + ${offset}, values.${name}, ordinals);`,
  );
  const make = new globalThis.Function(
    ...["ordinals", ...fields.map((_, index) => `write${index}`)],
    `return (blocks, at, values) => { ${writes.join(" ")} };`,
  ) as (...values: readonly unknown[]) => WriteRow;
  return make(nativeOrdinals, ...fields.map(({ field }) => field.write));
}
