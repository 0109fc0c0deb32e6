/**
 * How often the suite repeats what each repetition proves again. A run proves every branch, dtype, backend, layout and
 * error; `ORCHARD_TEST_ALL=1` (`bun run test --all`) runs more drawn cases, sizes and combinations of what is proven
 * alone already.
 */
export const isExhaustive = process.env["ORCHARD_TEST_ALL"] === "1";

/** How many repetitions: `repeats({ usual: 3, all: 40 })`. */
export const repeats = ({ usual, all }: { readonly usual: number; readonly all: number }): number =>
  isExhaustive ? all : usual;

/**
 * Returns all cases in an exhaustive run, and otherwise those that a usual run has. A function computes them only when
 * they run.
 */
export const usually = <Case>(
  all: readonly Case[],
  isUsual: (each: Case, index: number) => boolean,
): readonly Case[] => (isExhaustive ? all : all.filter(isUsual));
