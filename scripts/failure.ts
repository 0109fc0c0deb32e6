import { Failure } from "../src/cli/failure.ts";

export { Failure };

/** Runs a script's main function; prints a `Failure` as one line on stderr and exits with code 1. */
export async function main(body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
