import { OrchardError } from "./errors.ts";

/**
 * Runs a command. An error that the user can fix is printed to stderr, with exit code 1. Any other error is a bug, and
 * is thrown with its stack.
 */
export async function reportErrors(body: () => Promise<number>): Promise<number> {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    console.error(error.message);
    return 1;
  }
}
