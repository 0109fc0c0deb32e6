/** Checks of hyperparameters. */
import { ArgumentError } from "../core/errors.ts";

type Check = (value: number) => boolean;

interface Rule {
  readonly holds: Check;
  readonly wanted: string;
}

/** A number that is finite and at least 0. */
export const notNegative: Rule = { holds: (value) => value >= 0 && value < Infinity, wanted: "a number of at least 0" };
/** A number that is finite and above 0. */
export const positive: Rule = { holds: (value) => value > 0 && value < Infinity, wanted: "a number above 0" };
/** How much of an average stays: at least 0, below 1. */
export const decayRate: Rule = { holds: (value) => value >= 0 && value < 1, wanted: "a number from 0 to below 1" };
/** Any number but NaN and infinity. */
export const finite: Rule = { holds: Number.isFinite, wanted: "a finite number" };
/** A whole number above 0. */
export const count: Rule = {
  holds: (value) => Number.isSafeInteger(value) && value > 0,
  wanted: "a whole number above 0",
};

/** @throws {ArgumentError} `invalidOption`, naming the option, what came and what was wanted. */
export function checkNumber(operation: string, name: string, value: unknown, { holds, wanted }: Rule): void {
  if (typeof value === "number" && holds(value)) return;
  throw new ArgumentError(operation, "invalidOption", `${name} is ${wanted}; ${String(value)} came`);
}

/** Two shares that stay of averages. @throws {ArgumentError} `invalidOption` */
export function checkBetas(operation: string, betas: unknown): void {
  if (!Array.isArray(betas) || betas.length !== 2)
    throw new ArgumentError(
      operation,
      "invalidOption",
      `betas are two numbers, [0.9, 0.999] say; ${String(betas)} came`,
    );
  for (const [index, beta] of betas.entries()) checkNumber(operation, `betas[${index}]`, beta, decayRate);
}

/** @throws {ArgumentError} `unknownOption`: a misspelt option would be a default in silence. */
export function checkNames(operation: string, given: object, known: object): void {
  const unknown = Object.keys(given).filter((name) => !(name in known));
  if (unknown.length === 0) return;
  throw new ArgumentError(
    operation,
    "unknownOption",
    `there is no option ${unknown.join(", ")}; there are: ${Object.keys(known).join(", ")}`,
  );
}
