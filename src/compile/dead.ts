/** Finds calls whose results nothing reads. */
import { nativeOrdinals } from "../backend/cpu/tables.ts";
import { isFloat } from "../tensor/dtype.ts";
import type { Entry, RecordedCall } from "./recording.ts";

/** What a call accesses. */
interface Accesses {
  readonly operands: readonly (Entry | null)[];
  /** The results; empty if the call may also do something else, such as reject a value. */
  readonly results: readonly Entry[];
}

/**
 * Returns the indices of the calls that a program must perform.
 *
 * @param isLasting whether an entry outlives the function
 */
export function neededCalls(calls: readonly Accesses[], isLasting: (entry: Entry) => boolean): Set<number> {
  const read = new Set<Entry>();
  const needed = new Set<number>();
  for (const [at, { operands, results }] of [...calls.entries()].toReversed()) {
    const isDead = (entry: Entry) => entry.source === "computed" && !isLasting(entry) && !read.has(entry);
    if (results.length > 0 && results.every(isDead)) continue;
    needed.add(at);
    for (const entry of operands) if (entry) read.add(entry);
  }
  return needed;
}

/** Functions of the cpu dylib that return no error for any elements, except for integers. */
const total: ReadonlySet<string> = new Set(["unary", "binary", "ternary", "copy", "reduce", "matmul", "softmax"]);

/** Returns what a call of the cpu dylib accesses. */
export function accessesOf({ call: { description, rows }, block, operands }: RecordedCall): Accesses {
  const { name, fields, operands: names } = description;
  const result = operands[names.indexOf("out")];
  const indices = name === "reduce" ? operands[2] : null;
  const ordinals = nativeOrdinals("DType");
  const dtype = fields.find((field) => field.name === "dtype" || field.name === "from");
  const isTotal = total.has(name) && dtype && (name !== "binary" || isFloatOrdinal(ordinals, block[dtype.offset]));
  return { operands, results: isTotal && rows === 0 && result && !indices ? [result] : [] };
}

const isFloatOrdinal = (ordinals: Readonly<Record<string, number>>, value: number): boolean =>
  Object.entries(ordinals).some(([name, ordinal]) => ordinal === value && isFloat(name as "float32"));
