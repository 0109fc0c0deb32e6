import { OrchardError } from "../core/errors.ts";

/** Runs a command; what a user can mend is a sentence on stderr and exit code 1. Anything else is a bug and shows its stack. */
export async function reportErrors(body: () => Promise<number>): Promise<number> {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    console.error(error.message);
    return 1;
  }
}
