/** Some cases of a sweep that takes minutes: others on each run, all of them with `ORCHARD_TEST_ALL=1`. */
import { Random } from "../ops/samples.ts";
import { isExhaustive } from "./repeats.ts";

/** `ORCHARD_TEST_SEED` repeats a run's choice; the titles of tests name it. */
export const seed = Number(process.env["ORCHARD_TEST_SEED"] ?? Date.now() % 1_000_000);

const random = new Random(seed);

/** So many different cases of a list, or all. */
export function someOf<Case>(cases: readonly Case[], count: number): readonly Case[] {
  if (isExhaustive) return cases;
  const left = [...cases];
  return Array.from(
    { length: Math.min(count, left.length) },
    () => left.splice(random.integer(0, left.length - 1), 1)[0]!,
  );
}
