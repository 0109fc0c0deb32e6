/** Checks of the option objects that public functions and classes take. */
import { describeValue } from "./describe.ts";
import { ArgumentError } from "./errors.ts";
import { unknownOption } from "./parameters.ts";

/** @throws {ArgumentError} `unknownOption`: a misspelled option would be left out in silence. */
export function checkNames(operation: string, given: object, known: object): void {
  for (const name of Object.keys(given))
    if (!Object.hasOwn(known, name)) throw unknownOption(operation, name, Object.keys(known));
}

/** What a number has to be. */
export interface NumberRule {
  readonly holds: (value: number) => boolean;
  /** Such as `"a number above 0"`. */
  readonly expected: string;
}

/** Any number but NaN and infinity. */
export const finite: NumberRule = { holds: Number.isFinite, expected: "a finite number" };
/** A number that is finite and at least 0. */
export const notNegative: NumberRule = {
  holds: (value) => value >= 0 && value < Infinity,
  expected: "a number of at least 0",
};
/** A number that is finite and above 0. */
export const positive: NumberRule = { holds: (value) => value > 0 && value < Infinity, expected: "a number above 0" };
/** How much of an average stays, or a probability that is not certain: at least 0, below 1. */
export const belowOne: NumberRule = {
  holds: (value) => value >= 0 && value < 1,
  expected: "a number from 0 to below 1",
};
/** A whole number above 0. */
export const count: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value > 0,
  expected: "a whole number above 0",
};

/** @throws {ArgumentError} `invalidOption`, naming the option, what was expected and what came. */
export function checkNumber(operation: string, name: string, value: unknown, { holds, expected }: NumberRule): void {
  if (typeof value === "number" && holds(value)) return;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected ${name} to be ${expected}, got ${describeValue(value)}`,
  );
}
