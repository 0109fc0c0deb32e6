/**
 * Tries every option of operations and layers alone, with the others at their defaults: each keyword, and each flag
 * both ways. Such a call returns a result, or is rejected for a reason that a table states.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OrchardError } from "../../src/core/errors.ts";
import { type Signature, signatures } from "../../src/core/parameters.ts";
import { manualSeed, nn } from "../../src/index.ts";
import { groups } from "./groups.ts";
import { type Call, calls, enterFolder, leaveFolder } from "./upper.ts";

beforeAll(enterFolder);
afterAll(leaveFolder);

interface Subject {
  readonly name: string;
  readonly call: Call;
  readonly right: () => readonly unknown[];
  readonly signature: Signature;
}

const isOptions = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Options that are required regardless of other options. */
const companions: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  fractionalMaxPool2d: { outputSize: 1 },
  fractionalMaxPool3d: { outputSize: 1 },
  interpolate: { size: 2 },
  randintLike: { high: 4 },
};

/** Combinations that are rejected, by words of the error. */
const refused: Readonly<Record<string, string>> = {
  "batchNorm training=false": "expected runningMean and runningVar without training",
  "instanceNorm useInputStats=false": "expected runningMean and runningVar without useInputStats",
  "interpolate mode=linear": 'mode "linear" with x of 3 axes',
  "interpolate mode=trilinear": 'mode "trilinear" with x of 5 axes',
  "interpolate alignCorners=true": "alignCorners with a linear or cubic mode",
  "interpolate alignCorners=false": "alignCorners with a linear or cubic mode",
  "interpolate antialias=true": 'antialias with mode "bilinear" or "bicubic"',
  "randint requiresGrad=true": "expected a float dtype",
  "randperm requiresGrad=true": "expected a float dtype",
};

/** Operations and layers. */
const subjects: readonly Subject[] = [
  ...groups[0].collect().subjects.map(({ name, call, right }) => ({ name, call, right })),
  ...Object.entries(calls)
    .filter(([name]) => name in nn && /^[A-Z]/.test(name))
    .map(([name, [call, right]]) => ({ name, call, right })),
].flatMap((subject) => {
  const signature = signatures.get(subject.name);
  return signature === undefined ? [] : [{ ...subject, signature }];
});

/** Makes the call with one option; all other options are omitted unless they are required. */
function withOption({ call, right, signature }: Subject, option: Readonly<Record<string, unknown>>): unknown {
  manualSeed(7);
  const values = right();
  const last = values.at(-1);
  const own = isOptions(last) ? last : {};
  const needed = Object.entries(own).filter(([name]) => signature.parameters[name]?.isRequired);
  const given = Object.values(signature.parameters).filter(({ by, isRequired }) => by !== "name" && isRequired).length;
  const operands = (isOptions(last) ? values.slice(0, -1) : values).slice(0, Math.max(given - needed.length, 1));
  return call(...([...operands, { ...Object.fromEntries(needed), ...option }] as never[]));
}

/** The values to try for an option. */
function valuesFor(expected: string): readonly unknown[] {
  if (expected === "true or false") return [true, false];
  return /^"[^"]*"(?:(?:, | or )"[^"]*")*$/.test(expected)
    ? [...expected.matchAll(/"([^"]*)"/g)].map(([, word]) => word)
    : [];
}

const trials = subjects.flatMap((subject) =>
  Object.entries(subject.signature.parameters).flatMap(([option, { by, kind, isRequired }]) =>
    by === "operand" || isRequired ? [] : valuesFor(kind.expected).map((value) => ({ subject, option, value })),
  ),
);

describe("each option of a function works alone", () => {
  test.each([...Map.groupBy(trials, ({ subject }) => subject.name)])(
    "%s accepts each option alone, or rejects it as documented",
    (name, own) => {
      const meant = own.map(({ option, value }) => `${name} ${option}=${value}`).filter((trial) => trial in refused);
      const met = own.flatMap(({ subject, option, value }) => {
        const failure = failureOf(() => withOption(subject, { ...companions[name], [option]: value }));
        const trial = `${name} ${option}=${value}`;
        if (failure === undefined) return [];
        expect([trial, failure instanceof OrchardError, String(failure)]).toEqual([
          trial,
          true,
          expect.stringContaining(refused[trial] ?? "no error"),
        ]);
        return [trial];
      });
      expect(met).toEqual(meant);
    },
  );

  test("single options are known for hundreds of functions", () => expect(trials.length).toBeGreaterThan(600));
});

function failureOf(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}
