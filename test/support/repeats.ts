/**
 * Decides how often tests repeat. A usual run covers every branch, dtype, backend, kind of layout and error. An
 * exhaustive run, with `ORCHARD_TEST_ALL=1`, adds drawn cases, sizes, and combinations of what a usual run covers
 * separately.
 */
export const isExhaustive = process.env["ORCHARD_TEST_ALL"] === "1";

/** Returns how many repetitions, or which size, this run uses: `repeats({ usual: 3, all: 40 })`. */
export const repeats = ({ usual, all }: { readonly usual: number; readonly all: number }): number =>
  isExhaustive ? all : usual;

/** Returns all cases in an exhaustive run, and otherwise the usual ones: `usually(sizes, (size) => size < 100)`. */
export const usually = <Case>(
  all: readonly Case[],
  isUsual: (each: Case, index: number) => boolean,
): readonly Case[] => (isExhaustive ? all : all.filter(isUsual));
