import { ArgumentError } from "../../core/errors.ts";

/** The error of an integer divided by zero. */
export const divisionByZero = (operation: string): ArgumentError =>
  new ArgumentError(
    operation,
    "divisionByZero",
    "an integer is divided by 0; where(ne(b, 0), b, 1) keeps zeros out, and floats give infinities and NaN",
  );
