/** Some cases of a sweep that takes minutes, chosen by a seed; all of them with `ORCHARD_TEST_ALL=1`. */
import { Random } from "../ops/samples.ts";
import { isExhaustive } from "./repeats.ts";

/** `ORCHARD_TEST_SEED` chooses other cases; the titles of tests name it. */
export const seed = Number(process.env["ORCHARD_TEST_SEED"] ?? 1);

const random = new Random(seed);

/** This many different cases of a list, or all. */
export function someOf<Case>(cases: readonly Case[], count: number): readonly Case[] {
  if (isExhaustive) return cases;
  const left = [...cases];
  return Array.from(
    { length: Math.min(count, left.length) },
    () => left.splice(random.integer(0, left.length - 1), 1)[0]!,
  );
}
