/** Checks of the option objects of public functions and classes. */
import { describeValue } from "./describe.ts";
import { ArgumentError } from "./errors.ts";
import { unknownOption } from "./parameters.ts";

/** Rejects unknown option names, which are likely misspelled. @throws {ArgumentError} `unknownOption` */
export function checkNames(operation: string, given: object, known: object): void {
  for (const name of Object.keys(given))
    if (!Object.hasOwn(known, name)) throw unknownOption(operation, name, Object.keys(known));
}

/** A condition on a number. */
export interface NumberRule {
  readonly holds: (value: number) => boolean;
  /** Such as `"a number above 0"`. */
  readonly expected: string;
}

/** Any number except NaN and infinity. */
export const finite: NumberRule = { holds: Number.isFinite, expected: "a finite number" };
/** A finite number of at least 0. */
export const notNegative: NumberRule = {
  holds: (value) => value >= 0 && value < Infinity,
  expected: "a number of at least 0",
};
/** A finite number above 0. */
export const positive: NumberRule = { holds: (value) => value > 0 && value < Infinity, expected: "a number above 0" };
/** A number in [0, 1), such as the decay rate of an average or a dropout probability. */
export const belowOne: NumberRule = {
  holds: (value) => value >= 0 && value < 1,
  expected: "a number of at least 0 and below 1",
};
/** A whole number above 0. */
export const count: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value > 0,
  expected: "a whole number above 0",
};

/** Checks a number against a rule. @throws {ArgumentError} `invalidOption` */
export function checkNumber(operation: string, name: string, value: unknown, { holds, expected }: NumberRule): void {
  if (typeof value === "number" && holds(value)) return;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected ${name} to be ${expected}, got ${describeValue(value)}`,
  );
}
