import { ArgumentError } from "../../core/errors.ts";

/** @throws {ArgumentError} where an option is none of its words. */
export function checkChoice(operation: string, name: string, value: unknown, choices: readonly string[]): void {
  if (choices.includes(value as string)) return;
  const expected = choices.map((choice) => `"${choice}"`).join(" or ");
  throw new ArgumentError(operation, "unknownChoice", `expected ${name} to be ${expected}, got ${String(value)}`);
}
