/** The types of rows of invalid calls. */
import type { OrchardError } from "../../../src/core/errors.ts";
import { neg, ones, tensor } from "../../../src/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { leafOf, type Operands, type OperationName } from "../calls.ts";

export type ErrorClass = new (operation: string, code: string, message: string) => OrchardError;

export interface Mistake {
  readonly kind: string;
  /** The operation, by its public name, which the error must contain too. */
  readonly operation: OperationName | "backward" | "grad";
  readonly arguments: (operands: Operands) => readonly unknown[];
  readonly error: ErrorClass;
  /** Parts of the message: the actual and the expected value. */
  readonly says: readonly string[];
}

export type Name = Mistake["operation"];
export type Arguments = Mistake["arguments"];
export type Row = readonly [operation: Name, arguments_: Arguments, ...says: readonly string[]];

export const rowsOf = (kind: string, error: ErrorClass, rows: readonly Row[]): Mistake[] =>
  rows.map(([operation, arguments_, ...says]) => ({ kind, operation, arguments: arguments_, error, says }));

/** The same mistake with several operations. */
export const each = (names: string | readonly Name[], arguments_: Arguments, ...says: readonly string[]): Row[] =>
  (typeof names === "string" ? names.split(" ") : names).map((name) => [name as Name, arguments_, ...says]);

export const whole = { dtype: "int64" } as const;
/** A vector of 3 elements, a size that no operand has. */
export const three = () => ones([3]);
export const cube = () => ones([1, 1, 2]);
export const highest = () => ones([1, 1, 1, 1, 1, 1, 1, 1]);
export const nine = [1, 1, 1, 1, 1, 1, 1, 1, 1];
export const dtypeThatIsNone = { dtype: "float8" as never };
export const refused = 'got "float8"';
export const list = "float64, float32, float16";

/** The arguments of `grad`. */
export const lossOf = (x: Tensor, options?: object): readonly unknown[] => {
  const own = leafOf(x);
  return [neg(own), [own], options];
};

/** Indices of which some are out of range. */
export const far = () => tensor([0n, 7n, -1n]);
