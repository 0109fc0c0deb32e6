import { ArgumentError } from "../../core/errors.ts";

/** Returns the error for an integer division by zero. */
export const divisionByZero = (operation: string): ArgumentError =>
  new ArgumentError(
    operation,
    "divisionByZero",
    "an integer is divided by 0; where(ne(b, 0), b, 1) replaces zeros, and floats give infinities and NaN",
  );
