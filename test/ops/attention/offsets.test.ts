/** Elements of operands and results whose distances exceed 32 bits: every address is computed in 64 bits. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import type { FarResults } from "../../support/far-attention.ts";
import { bunWords } from "../../support/program.ts";
import { tested } from "../run.ts";

const program = join(import.meta.dir, "..", "..", "support", "far-attention.ts");

/** In a separate process, whose software device may hand out more addresses than the machine has memory. */
function farResults(backend: BackendName): FarResults[] {
  const unlimited = String(2 ** 44);
  const env = { ...process.env, ORCHARD_METAL_MEMORY_LIMIT: unlimited, ORCHARD_MEMORY_LIMIT: unlimited };
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, program, backend], { env });
  expect([exitCode, exitCode === 0 ? "" : stderr.toString()]).toEqual([0, ""]);
  return stdout
    .toString()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as FarResults);
}

const least: Readonly<Record<BackendName, number>> = { metal: 2 ** 33, cpu: 2 ** 31, reference: 2 ** 31 };

describe.each(tested)("attention with large offsets on %s", (backend) => {
  test("axes may have offsets beyond 2^31, with the same bits as dense operands, forward and backward", () => {
    // On Apple's device such buffers would occupy memory.
    if (backend === "metal" && !metalContext().isSoftware) return expect(process.platform).toBe("darwin");
    const results = farResults(backend);
    expect(results.map(({ queries, axis }) => [queries, axis])).toEqual(
      [40, 3].flatMap((queries) => [0, 1, 2, 3].map((axis) => [queries, axis])),
    );
    for (const { near, far, offset } of results) {
      expect(offset).toBeGreaterThan(least[backend]);
      expect(near.flat().some((value) => value !== 0)).toBe(true);
      expect(far).toEqual(near);
    }
  });
});
