/** Sequences of launches that repeat, as CUDA graphs, against the stand-in for NVIDIA's driver. No GPU is needed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { environmentFlag } from "../../../../src/core/environment.ts";
import { type DrawnLaunch, firstElements } from "./rounds.ts";
import { type Outcome, prepare, runOnStandin } from "./standin.ts";

const isTested = process.platform === "linux" && !environmentFlag("ORCHARD_SKIP_METAL");
const folder = mkdtempSync(join(tmpdir(), "orchard-gpu-"));
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  if (isTested) await prepare(folder);
});

const run = (rounds: readonly (readonly DrawnLaunch[])[], variables: Record<string, string> = {}): Outcome =>
  runOnStandin(folder, "rounds.ts", { ORCHARD_METAL_GPU_GRAPHS: "1", ...variables }, [JSON.stringify(rounds)]);

/** The line that the stand-in logs when a launch runs: it reads the buffer and the scalar at their addresses. */
const lineOf = ({ buffer, scalar, threads }: DrawnLaunch): string => {
  const groups = Math.ceil(threads / 64);
  const shape = `launch ${groups}x1x1 of 64x1x1, threads ${threads} 1 1, shared 0, first 0 0 0`;
  return `${shape}, x ${firstElements[buffer]}, scalar ${scalar}`;
};

function expectLaunches({ log, errors }: Outcome, rounds: readonly (readonly DrawnLaunch[])[]): void {
  expect(errors).toBe("");
  expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
  expect(log.filter((line) => line.startsWith("launch"))).toEqual(rounds.flat().map(lineOf));
}

const countOf = ({ log }: Outcome, line: string): number => log.filter((each) => each === line).length;

const drawn = fc.record({
  buffer: fc.nat(firstElements.length - 1),
  scalar: fc.integer({ min: -50, max: 50 }),
  threads: fc.constantFrom(64, 200),
});

/** Rounds that repeat one of a few patterns, each with other scalars, and sometimes with another buffer. */
const drawnRounds = fc
  .array(fc.array(drawn, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 3 })
  .chain((patterns) =>
    fc.array(
      fc
        .tuple(fc.nat(patterns.length - 1), fc.integer({ min: -50, max: 50 }), fc.option(fc.tuple(fc.nat(), fc.nat(2))))
        .map(([which, shift, change]) => {
          const pattern = patterns[which]!;
          return pattern.map((launch, at) => {
            const isChanged = change !== null && at === change[0] % pattern.length;
            return { ...launch, scalar: launch.scalar + shift, buffer: isChanged ? change[1] : launch.buffer };
          });
        }),
      { minLength: 10, maxLength: 20 },
    ),
  );

describe.skipIf(!isTested)("sequences of launches that repeat", () => {
  test("run with the same kernels, buffers and scalars as without graphs", () => {
    fc.assert(
      fc.property(drawnRounds, (rounds) => expectLaunches(run(rounds), rounds)),
      { numRuns: 6, seed: 39 },
    );
  });

  const pattern = Array.from({ length: 8 }, (_, at) => ({ buffer: at % 3, scalar: at, threads: 200 }));
  const changed = pattern.map((launch, at) => (at === 5 ? { ...launch, buffer: 0 } : launch));

  test("become a graph at the second time, which gets the parameters that change", () => {
    const rounds = [pattern, pattern, pattern, changed, pattern, pattern];
    const outcome = run(rounds);
    expectLaunches(outcome, rounds);
    expect(countOf(outcome, "graph of 8")).toBe(1);
    expect(countOf(outcome, "graph")).toBe(5);
    expect(countOf(outcome, "set")).toBe(2);
  });

  test("become no graph if they are short, new, or graphs are off", () => {
    const short = [pattern.slice(0, 3), pattern.slice(0, 3), pattern.slice(0, 3)];
    for (const rounds of [short, [pattern, pattern.slice(0, 7), pattern.slice(0, 6)]]) {
      const outcome = run(rounds);
      expectLaunches(outcome, rounds);
      expect(countOf(outcome, "graph")).toBe(0);
    }
    const rounds = [pattern, pattern, pattern];
    const outcome = run(rounds, { ORCHARD_METAL_GPU_GRAPHS: "0" });
    expectLaunches(outcome, rounds);
    expect(countOf(outcome, "graph")).toBe(0);
  });

  test("keep at most four graphs of the same kernels and grids, and free no memory that work uses", () => {
    const variants = Array.from({ length: 9 }, (_, variant) =>
      pattern.map((launch, at) => ({ ...launch, buffer: Math.floor(variant / 3 ** (at % 2)) % 3 })),
    );
    const rounds = [...variants, ...variants, ...variants].flatMap((variant) => [variant, variant]);
    const outcome = run(rounds);
    expectLaunches(outcome, rounds);
    expect(countOf(outcome, "graph of 8")).toBeGreaterThan(4);
  });

  test.each(["cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags", "cuGraphLaunch"])(
    "are launched one by one if the driver refuses %s",
    (name) => {
      const rounds = [pattern, pattern, pattern];
      const outcome = run(rounds, { STANDIN_FAIL: `${name}:801` });
      expectLaunches(outcome, rounds);
      expect(countOf(outcome, "graph")).toBe(0);
    },
  );
});
