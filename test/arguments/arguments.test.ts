/** Calls every public function with hostile arguments: it returns, or throws a typed error that says what was wrong. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { OrchardError } from "../../src/core/errors.ts";
import { signatures } from "../../src/core/parameters.ts";
import { tidy } from "../../src/tensor/tidy.ts";
import { repeats } from "../support/repeats.ts";
import { problemsOf, type Subject } from "./fuzz.ts";
import { groups } from "./groups.ts";
import { CallersError, hostiles } from "./hostile.ts";

/** A hostile call causes no fallback, and leaves no memory behind. */
const around = <R>(body: () => R): R => withBackend("cpu", () => withStrict(true, () => tidy(body)));

for (const group of groups)
  describe(group.name, () => {
    const { subjects, missing } = group.collect();

    test("every function is in the table of parameters and has a valid call", () => {
      expect(missing).toEqual([]);
      expect(subjects.length).toBeGreaterThan(group.atLeast);
      const refused = around(() => subjects.flatMap((subject) => whyRefused(subject) ?? []));
      expect(refused).toEqual([]);
    });

    test.each(subjects.map((subject) => [subject.name, subject] as const))(
      "%s answers hostile values with a result or a typed error",
      (_, subject) => {
        expect(problemsOf(subject, around)).toEqual([]);
      },
    );

    test("several hostile values in one call give a result or a typed error", () => {
      const subject = fc.constantFrom(...subjects);
      const values = fc.array(fc.constantFrom(...hostiles), { maxLength: 5 });
      const check = (own: Subject, given: readonly (typeof hostiles)[number][]) =>
        around(() => {
          try {
            own.call(...given.map(({ make }) => make()));
          } catch (error) {
            if (error instanceof CallersError) return;
            if (!(error instanceof OrchardError)) throw error;
            expect(error.message).not.toBe("");
          }
        });
      fc.assert(fc.property(subject, values, check), { numRuns: repeats({ usual: 4_000, all: 20_000 }), seed: 1 });
    });
  });

function whyRefused({ name, call, right }: Subject): string | undefined {
  try {
    call(...right());
    return undefined;
  } catch (error) {
    return `${name}: ${String(error)}`;
  }
}

test("the table is complete", () => {
  const tested = new Set(groups.flatMap((group) => group.collect().subjects.map(({ signature }) => signature)));
  const elsewhere = new Set(groups.flatMap((group) => group.elsewhere ?? []));
  const untested = [...signatures.values()].filter((own) => !tested.has(own) && !elsewhere.has(own.operation));
  expect(untested.map(({ operation }) => operation)).toEqual([]);
});
