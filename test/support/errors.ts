/** What a call throws. @throws {Error} where it throws nothing. */
export function errorOf(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error("expected the call to throw, and it returned");
}
