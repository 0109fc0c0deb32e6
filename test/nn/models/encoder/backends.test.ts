/** Encoders on every backend, against `transformers`: every kind of attention, with a padded row. */
import { expect, test } from "bun:test";
import { backendNames, getBackend, withBackend } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { answers, errorOf, families, loadEncoder, outputOf, writeModel } from "./oracle.ts";

const folder = testFolder("backends");

/**
 * Encoders with learned positions, with positions after padding and buckets, with windows and rotations, and with
 * distances.
 */
const kinds = ["bert", "mpnet", "modernbert", "deberta-v2"] as const;

test.each(kinds.flatMap((name) => backendNames.map((backend) => [name, backend] as const)))(
  "%s on %s has the same results as transformers",
  async (name, backend) => {
    const own = families[name].cases.find(({ task }) => task === "classify")!;
    const path = folder.file(`${name} ${backend}`);
    await writeModel(path, name, own);
    const model = await loadEncoder(path);
    const got = withBackend(backend, () => {
      expect(getBackend()).toBe(backend);
      return outputOf(model, own);
    });
    expect(errorOf(got, answers[own.output!])).toBeLessThan(1e-5);
  },
);
