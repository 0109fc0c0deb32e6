/** Returns the error of a call. @throws {Error} if it throws nothing. */
export function errorOf(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error("expected the call to throw, but it returned");
}
