/** Sharded optimizer state: the steps of a whole optimizer, bit by bit, with a share of its memory. */
import { beforeAll, describe, expect, test } from "bun:test";
import { testFolder } from "../support/folder.ts";
import { mpich, openMpi, runProgram } from "./launch.ts";

const { path: folder } = testFolder("sharded");
type Pair = readonly [unknown, unknown];

describe.skipIf(openMpi.missing !== undefined)("sharded optimizers match whole ones", () => {
  test.each([2, 3])("sharded steps on %d ranks match whole ones", async (ranks) => {
    const { ranks: all, text, status } = await runProgram<Record<string, Pair>>(openMpi, ranks, "sharded.ts", folder);
    expect({ text, status }).toEqual({ text: "", status: 0 });
    for (const name of ["AdamW", "SGD", "Adafactor", "ASGD", "Rprop"]) {
      for (const results of all)
        for (const what of [name, `${name} state`, `${name} resumed`]) {
          const [got, expected] = results[what];
          expect({ what, got }).toEqual({ what, got: expected });
        }
      const bytes = all.map((results) => results[`${name} bytes`] as readonly [number, number]);
      const [, whole] = bytes[0];
      expect(bytes.reduce((sum, [own]) => sum + own, 0)).toBe(whole);
      // The size of Adafactor's state is not proportional to that of the sharded parameters.
      if (name !== "Adafactor") for (const [own] of bytes) expect(own / whole).toBeLessThan(1.5 / ranks);
    }
  });
});

interface Shares extends Readonly<Record<string, unknown>> {
  readonly bytes: readonly [Bytes, Bytes];
}
interface Bytes {
  readonly gradients: number;
  readonly state: number;
}
type Numbers = readonly [readonly number[], readonly number[]];

/** Sums of as many terms as there are ranks, in another order: rounding errors that grow over six steps. */
const areClose = ([got, want]: Numbers): boolean => {
  const bound = 256 * 2 ** -24 * Math.max(...want.map(Math.abs));
  return got.length === want.length && got.every((value, at) => Math.abs(value - want[at]) <= bound);
};

for (const [installation, ranks] of [
  [openMpi, 2],
  [mpich, 3],
] as const)
  describe.skipIf(installation.missing !== undefined)(`sharded gradients on ${ranks} ranks`, () => {
    let all: readonly Shares[] = [];

    beforeAll(async () => {
      if (installation.missing !== undefined) return;
      const { ranks: results, text, status } = await runProgram<Shares>(installation, ranks, "shares.ts", folder);
      expect({ text, status }).toEqual({ text: "", status: 0 });
      all = results;
    });

    test("sharded steps equal whole ones: accumulated, clipped, scaled, with an overflow of one rank", () => {
      expect(all).toHaveLength(ranks);
      for (const results of all)
        for (const step of [0, 1, 2, 3, 4, 5]) {
          const [got, want] = results[`norms ${step}`] as Numbers;
          if (step === 4) expect([got.slice(2), Number.isFinite(got[1])]).toEqual([want.slice(2), false]);
          else expect({ step, isClose: areClose([got, want]) }).toEqual({ step, isClose: true });
          expect({ step, isClose: areClose(results[`weights ${step}`] as Numbers) }).toEqual({ step, isClose: true });
          // the weights are the same on every rank
          expect(results[`weights ${step}`]).toEqual(all[0][`weights ${step}`]);
        }
      const weights = [3, 4].map((step) => all[0][`weights ${step}`] as Numbers);
      expect(weights[1]).toEqual(weights[0]); // no step is taken after an overflow
    });

    test("sharded gradients are exchanged by reduceScatter alone, and use a rank's share of the memory", () => {
      for (const results of all)
        for (const step of [0, 1, 2, 3, 4, 5]) expect(results[`calls ${step}`]).toEqual(["reduceScatterParts"]);
      for (const what of ["gradients", "state"] as const) {
        const own = all.map(({ bytes: [share] }) => share[what]);
        const whole = all[0].bytes[1][what];
        expect(own.reduce((sum, bytes) => sum + bytes, 0)).toBe(whole);
        for (const bytes of own) expect(bytes / whole).toBeLessThan(1.5 / ranks);
      }
    });

    test("a second pass that would exchange sharded gradients again is rejected", () => {
      for (const results of all) expect(results["not cleared"]).toBe("notCleared");
    });
  });
