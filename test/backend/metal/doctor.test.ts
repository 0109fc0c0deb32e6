import { expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { diagnose, formatDiagnoses } from "../../../src/cli/doctor.ts";
import { cacheFolder } from "../../../src/core/paths.ts";

test("on a complete machine the doctor runs a computation and recommends nothing", () => {
  const diagnoses = diagnose(cacheFolder());
  const isOptional = (subject: string) => subject === "mpi"; // tests of ranks may install MPI later
  expect(diagnoses.filter(({ state, fix, subject }) => state === "missing" || (fix && !isOptional(subject)))).toEqual(
    [],
  );
  const text = formatDiagnoses(diagnoses);
  expect(text).toMatch(/✓ metal kernels +3² \+ 4² = 25/);
  for (const subject of [
    "machine",
    "orchard-metal",
    "bun",
    "swift",
    "metal",
    "metal can",
    "compiled kernels",
    "toolchains",
  ])
    expect(text).toMatch(new RegExp(`^[✓·] ${subject} `, "m"));
  const { capabilities } = metalContext().deviceInfo({ probe: true });
  const can = Object.entries(capabilities!).map(([what, { supported, reason }]) =>
    supported ? `${what} yes` : `${what} no (${reason})`,
  );
  expect(can.some((each) => each.endsWith(" yes"))).toBe(true);
  expect(diagnoses.find(({ subject }) => subject === "metal can")?.detail).toBe(can.join(", "));
});
