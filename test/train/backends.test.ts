/**
 * The same run on every backend: the same text, weights and masks of dropout, so that curves differ by rounding only.
 */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { withStrict } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import type { Settings } from "../../src/train/settings.ts";
import { checkFindings } from "../ops/run.ts";
import { type Disturbance, distances, small, type Trained, train } from "./trained.ts";

/** Relative to the largest number: a few roundings of float32 in each of six steps. */
const TOLERANCE = 2e-6;
const settings: Settings = { ...small, layers: 2, steps: 6 };

/** Trains on a backend without any fallback. */
const trainOn = (backend: BackendName, disturb?: Disturbance): Promise<Trained> =>
  withStrict(true, () => train(backend, settings, disturb));
const expected = await trainOn("reference");

async function checkSame(backend: BackendName): Promise<void> {
  const trained = await trainOn(backend);
  const far = distances(trained, expected);
  console.log(`      ${backend} from reference: ${JSON.stringify(far)}`);
  expect(Object.entries(far).filter(([, distance]) => !(distance <= TOLERANCE))).toEqual([]);
  expect(trained.sample).toBe(expected.sample);
}

describe("a run with dropout has the reference's losses, moments and sample", () => {
  test("a run on cpu has the same losses as reference", () => checkSame("cpu"));

  test.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))(
    "a run on metal has the same losses as reference, and the checker finds nothing",
    async () => {
      metalContext().configure("check", true);
      await checkSame("metal");
      checkFindings({ name: "a training run" });
    },
  );
});

test("other masks give clearly different losses", async () => {
  const others = await trainOn("cpu", { atStart: ({ generator }) => void generator.manualSeed(5) });
  expect(distances(others, expected).losses).toBeGreaterThan(100 * TOLERANCE);
});
