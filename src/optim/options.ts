/** Checks of hyperparameters. */
import { ArgumentError } from "../core/errors.ts";

/** A range of numbers, and its name in an error message. */
interface Range {
  readonly holds: (value: number) => boolean;
  readonly expected: string;
}

export const notNegative: Range = {
  holds: (value) => value >= 0 && value < Infinity,
  expected: "a number of at least 0",
};
export const positive: Range = { holds: (value) => value > 0 && value < Infinity, expected: "a number above 0" };
/** The decay rate of a moving average. */
export const decayRate: Range = { holds: (value) => value >= 0 && value < 1, expected: "a number from 0 to below 1" };
export const finite: Range = { holds: Number.isFinite, expected: "a finite number" };
export const count: Range = {
  holds: (value) => Number.isSafeInteger(value) && value > 0,
  expected: "a whole number above 0",
};

/** @throws {ArgumentError} `invalidOption`, naming the option, the range and the value. */
export function checkNumber(operation: string, name: string, value: unknown, { holds, expected }: Range): void {
  if (typeof value === "number" && holds(value)) return;
  throw new ArgumentError(operation, "invalidOption", `expected ${name} to be ${expected}, got ${String(value)}`);
}

/** Checks a pair of decay rates. @throws {ArgumentError} `invalidOption` */
export function checkBetas(operation: string, betas: unknown): void {
  if (!Array.isArray(betas) || betas.length !== 2)
    throw new ArgumentError(
      operation,
      "invalidOption",
      `expected betas to be two numbers, such as [0.9, 0.999], got ${String(betas)}`,
    );
  for (const [index, beta] of betas.entries()) checkNumber(operation, `betas[${index}]`, beta, decayRate);
}

/** @throws {ArgumentError} `unknownOption`: a misspelt option must not silently have its default. */
export function checkNames(operation: string, given: object, known: object): void {
  const unknown = Object.keys(given).filter((name) => !(name in known));
  if (unknown.length === 0) return;
  throw new ArgumentError(
    operation,
    "unknownOption",
    `there is no option ${unknown.join(", ")}; the options are: ${Object.keys(known).join(", ")}`,
  );
}
