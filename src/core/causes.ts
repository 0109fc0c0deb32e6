/** Messages and codes of caught values. Any value can be thrown. */

/** Returns the message of an error, and any other value as text. */
export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** Returns the code of an error of the system, such as `ENOENT`. */
export const codeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined;
