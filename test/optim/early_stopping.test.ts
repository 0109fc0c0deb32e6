/** Early stopping, compared with its definition over all values so far. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { ArgumentError, optim } from "../../src/index.ts";

const measures = fc.array(fc.oneof(fc.integer({ min: -4, max: 4 }), fc.constant(Number.NaN), fc.constant(Infinity)), {
  maxLength: 40,
});

/**
 * A value is a record if it is below all before it; training stops `patience` steps after the last record, or after the
 * start.
 */
function firstStop(list: readonly number[], patience: number): number {
  const isRecord = (at: number) =>
    Number.isFinite(list[at]) && list.slice(0, at).every((before) => !Number.isFinite(before) || list[at] < before);
  const lastRecord = (at: number) => list.findLastIndex((_, own) => own <= at && isRecord(own));
  return list.findIndex((_, at) => at - lastRecord(at) >= patience);
}

describe("EarlyStopping ends a run without progress", () => {
  test("EarlyStopping stops after `patience` values that are no better; its state is JSON and resumes", () => {
    fc.assert(
      fc.property(measures, fc.integer({ min: 1, max: 6 }), fc.constantFrom("min", "max"), (list, patience, mode) => {
        let stopping = new optim.EarlyStopping({ patience, mode });
        const found = list.findIndex((measure) => {
          const stops = stopping.step(mode === "min" ? measure : -measure);
          const state: unknown = JSON.parse(JSON.stringify(stopping.stateDict()));
          stopping = new optim.EarlyStopping(patience, { mode });
          stopping.loadStateDict(state as optim.EarlyStoppingState);
          return stops;
        });
        expect(found).toBe(firstStop(list, patience));
      }),
      { numRuns: 300 },
    );
  });

  test("a value has to be better by more than minDelta", () => {
    const stopping = new optim.EarlyStopping({ patience: 2, minDelta: 0.5 });
    expect([3, 2.5, 2.4375, 2, 2].map((measure) => stopping.step(measure))).toEqual([false, false, false, false, true]);
    expect([stopping.best, stopping.badSteps]).toEqual([2.4375, 2]);
  });

  test.each([
    ["a patience of 0", () => new optim.EarlyStopping({ patience: 0 })],
    ["a negative delta", () => new optim.EarlyStopping({ minDelta: -1 })],
    ["a text", () => new optim.EarlyStopping().step("1" as never)],
    ["another state", () => new optim.EarlyStopping().loadStateDict({ best: 1, badSteps: -1 })],
  ])("EarlyStopping rejects %s", (_name, call) => {
    expect(call).toThrow(ArgumentError);
  });
});
