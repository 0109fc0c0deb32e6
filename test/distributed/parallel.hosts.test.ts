/** Data-parallel training: the steps of all ranks match one process with all their batches. */
import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { testFolder } from "../support/folder.ts";
import { mpich, openMpi, runProgram } from "./launch.ts";

type Values = readonly number[];
type Gradients = Readonly<Record<string, Values | null>>;
interface Results extends Readonly<Record<string, unknown>> {
  readonly weights: { readonly equal: boolean; readonly buffer: Values };
  readonly events: readonly string[];
  readonly after: readonly [readonly Values[], readonly Values[]];
  readonly everywhere: Values;
  readonly skipped: { readonly same: boolean; readonly scale: number };
  readonly sync: Values;
  readonly detached: Values;
  readonly "one rank had none": Gradients;
}

const { path: folder } = testFolder("parallel");

interface Span {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly args: Readonly<Record<string, unknown>> | undefined;
}

/** Events of a trace other than operations: a beginning and an end with one id. */
function spansIn(path: string): Span[] {
  const events = JSON.parse(readFileSync(path, "utf8")) as (Span & { ph: string; id?: string; ts: number })[];
  const ends = new Map(events.flatMap(({ ph, id, ts }) => (ph === "e" ? [[id, ts] as const] : [])));
  return events.flatMap(({ ph, id, ts, name, args }) =>
    ph === "b" && ends.has(id) ? [{ name, args, start: ts, end: ends.get(id)! }] : [],
  );
}

/** Sums of n terms in two orders differ by n roundings of the largest value at most. */
const closeTo = (got: Values, want: Values, terms: number): boolean => {
  const bound = terms * 2 ** -24 * Math.max(...want.map(Math.abs));
  return got.length === want.length && got.every((value, at) => Math.abs(value - want[at]) <= bound);
};

for (const [installation, ranks] of [
  [openMpi, 2],
  [openMpi, 4],
  [mpich, 2],
] as const)
  describe.skipIf(installation.missing !== undefined)(`${ranks} ranks of ${installation.name}`, () => {
    let all: readonly Results[] = [];
    const traces = `trace-${ranks}-${installation.name.replace(" ", "-")}-`;

    beforeAll(async () => {
      if (installation.missing !== undefined) return;
      const variables = { ORCHARD_TRACE: join(folder, `${traces}%p.json`) };
      const program = runProgram<Results>(installation, ranks, "parallel.ts", folder, variables);
      const { ranks: results, text, status } = await program;
      expect({ text, status }).toEqual({ text: "", status: 0 });
      all = results;
    });

    test("ranks start with rank 0's weights and buffers, and end with the same weights bit by bit", () => {
      expect(all).toHaveLength(ranks);
      for (const { weights, after, everywhere } of all) {
        expect(weights).toEqual({ equal: true, buffer: [1] });
        expect(after[0].flat()).toEqual([...everywhere]);
      }
    });

    test("ranks have the same gradients as one process with all batches: accumulated, clipped, scaled", () => {
      for (const results of all)
        for (const step of [0, 1, 2, 3, 4]) {
          const [got, want] = results[`gradients ${step}`] as [Gradients, Gradients];
          for (const [name, expected] of Object.entries(want))
            if (expected === null) expect({ step, name, got: got[name] }).toEqual({ step, name, got: null });
            else
              expect({ step, name, isClose: closeTo(got[name]!, expected, 64) }).toEqual({ step, name, isClose: true });
          const [norm, plainNorm] = results[`norms ${step}`] as [number, number];
          expect(Math.abs(norm / plainNorm - 1)).toBeLessThan(64 * 2 ** -24);
        }
      const [got, want] = all[0].after;
      expect(closeTo(got.flat(), want.flat(), 64 * 5)).toBe(true);
    });

    test("unused gradients stay unchanged, and count 0 for ranks without a gradient that another has", () => {
      for (const results of all) {
        const [used] = results["gradients 3"] as [Gradients];
        const [unused] = results["gradients 2"] as [Gradients];
        expect([unused["sometimes.bias"], used["unused.weight"], used["frozen.weight"]]).toEqual([
          null,
          null,
          undefined!,
        ]);
        expect(Math.max(...used["sometimes.bias"]!.map(Math.abs))).toBeGreaterThan(0);
      }
    });

    test("gradients are exchanged during backward, from the second step on", () => {
      for (const { events } of all) {
        const of = (step: number) => events.slice(events.indexOf(`step ${step}`) + 1);
        expect(of(0).slice(0, 2)).toEqual(["first layer", "exchange"]);
        for (const step of [1, 2, 3, 4]) expect(of(step).slice(0, 2)).toEqual(["exchange", "first layer"]);
        expect(events[0]).toBe("first layer"); // this event is from the pass without an exchange
      }
    });

    test("the trace shows that buckets are exchanged during backward, from the second exchange on", () => {
      const files = readdirSync(folder).filter((name) => name.startsWith(traces));
      expect(files).toHaveLength(ranks);
      for (const file of files) {
        const spans = spansIn(join(folder, file));
        const buckets = spans.filter(({ args }) => args?.["call"] === "allReduce");
        const libraries = new Set(buckets.map(({ args }) => String(args?.["library"])));
        expect([...libraries].join()).toMatch(installation === mpich ? /^MPICH / : /^Open MPI /);
        const within = spans
          .filter(({ name }) => name === "backward")
          .map(({ start, end }) => buckets.filter((bucket) => bucket.start > start && bucket.start < end).length);
        const exchanging = within.filter((count) => count > 0);
        expect(within[1]).toBe(0); // this rank's first exchange, at the end of its pass
        expect(exchanging.length).toBeGreaterThanOrEqual(4);
        for (const { start, end } of buckets) expect(end).toBeGreaterThanOrEqual(start);
      }
    });

    test("ranks skip a step together if one rank's gradients overflow", () => {
      for (const { skipped } of all) expect(skipped).toEqual({ same: true, scale: 32 });
    });

    test("sync() exchanges gradients if a rank's pass reaches no parameter, and not after detach()", () => {
      for (const [rank, results] of all.entries()) {
        expect(results["one rank had none"]).toEqual(all[0]["one rank had none"]);
        expect(results.detached).not.toEqual(all[(rank + 1) % ranks].detached);
      }
    });
  });
