import { InvalidArgumentError } from "commander";

/** Parses the value of a command-line option. @throws {InvalidArgumentError} if the text is not a number. */
export function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || Number.isNaN(value)) throw new InvalidArgumentError("Expected a number.");
  return value;
}
