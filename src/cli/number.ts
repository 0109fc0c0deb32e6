import { InvalidArgumentError } from "commander";

/** The value of an option that is a number. @throws {InvalidArgumentError} */
export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || Number.isNaN(value)) throw new InvalidArgumentError("It is not a number.");
  return value;
}
