/** Training that disposes of nothing: memory stays flat, in loops that wait and in loops that never do. */
import { describe, test } from "bun:test";
import { environmentFlag } from "../../src/core/environment.ts";
import { checkFlat as checkFlatMemory } from "../support/flat-memory.ts";
import { repeats } from "../support/repeats.ts";

/**
 * Steps on metal, which is simulated. A usual run has a quarter of them: it finds every block that a step leaks, since
 * blocks are counted, and other memory from 40 KB a step.
 */
const steps = (all: number): string => String(repeats({ usual: all / 4, all }));

const checkFlat = async (...words: string[]) => void (await checkFlatMemory("training.ts", ...words));

describe("training without dispose needs bounded memory", () => {
  test.concurrent("memory stays flat over 5,000 steps on cpu, never waiting", () =>
    checkFlat("cpu", "5000", "sync", "128x128x128"));
  test.concurrent("memory stays flat over 5,000 steps on cpu, awaiting each", () =>
    checkFlat("cpu", "5000", "async", "128x128x128"));
  test.concurrent("memory stays flat over 5,000 steps on cpu, of blocks too small for its allocator", () =>
    checkFlat("cpu", "5000", "sync", "16x16x4"));
});

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("training without dispose on metal needs bounded memory", () => {
  test.concurrent("memory stays flat in loops that never wait", () =>
    checkFlat("metal", steps(4000), "sync", "32x32x16"));
  test.concurrent("memory stays flat in loops that await each step", () =>
    checkFlat("metal", steps(2000), "async", "32x32x16"));
  test.concurrent("memory stays flat in private buffers", () =>
    checkFlat("metal", steps(3200), "sync", "32x32x16", "private"));
});
