/** Starts programs in child processes. */

/** Set by the suite: see `scripts/suite/modules.ts`. */
const preload = process.env["ORCHARD_TEST_MODULES"];

/**
 * The words that start Bun with a program that imports the library: `[...bunWords, "-e", text]`. In the suite the
 * library's modules come from a pack, which loads in a fifth of the time.
 */
export const bunWords: readonly string[] =
  preload === undefined ? [process.execPath] : [process.execPath, "--preload", preload];
