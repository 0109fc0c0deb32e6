/** Optimizer state in shares: the steps of a whole optimizer, bit by bit, with a share of its memory. */
import { describe, expect, test } from "bun:test";
import { testFolder } from "../support/folder.ts";
import { openMpi, runProgram } from "./launch.ts";

const { path: folder } = testFolder("sharded");
type Pair = readonly [unknown, unknown];

describe.skipIf(openMpi.missing !== undefined)("optimizers in shares", () => {
  test.each([2, 3])(
    "on %d ranks",
    async (ranks) => {
      const { ranks: all, text, status } = await runProgram<Record<string, Pair>>(openMpi, ranks, "sharded.ts", folder);
      expect({ text, status }).toEqual({ text: "", status: 0 });
      for (const name of ["AdamW", "SGD"]) {
        for (const results of all)
          for (const what of [name, `${name} state`, `${name} resumed`]) {
            const [got, expected] = results[what]!;
            expect({ what, got }).toEqual({ what, got: expected });
          }
        const bytes = all.map((results) => results[`${name} bytes`] as readonly [number, number]);
        const [, whole] = bytes[0]!;
        expect(bytes.reduce((sum, [own]) => sum + own, 0)).toBe(whole);
        for (const [own] of bytes) expect(own / whole).toBeLessThan(1.5 / ranks);
      }
    },
    60_000,
  );
});
