/** The example, as a user runs it: it learns from real digits, reports it, and fails if it did not learn enough. */
import { describe, expect, test } from "bun:test";
import { packageRoot } from "../../src/core/paths.ts";
import { bunWords } from "../support/program.ts";

function perceptron(environment: Record<string, string>, ...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "examples/perceptron.ts", ...words], {
    cwd: packageRoot,
    env: { ...process.env, ...environment },
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

const accuracyIn = (out: string) => Number(/^accuracy (\d+\.\d\d) % on unseen digits/m.exec(out)?.[1]);

/** Operation, backend, calls and reason of each row. */
const pathsIn = (out: string) =>
  [...out.matchAll(/^ {2}(\w+) +(\w+) +(\d+) {2}(.*)$/gm)].map(([, operation, backend, calls, reason]) => ({
    operation,
    backend,
    calls: Number(calls),
    reason,
  }));

describe("the perceptron learns on the cpu backend", () => {
  const cpu = { ORCHARD_BACKEND: "cpu" };

  test("two epochs of a third of the digits reach 95 %", () => {
    const { out, err, exitCode } = perceptron(cpu, "20000", "2");
    expect(accuracyIn(out)).toBeGreaterThanOrEqual(95);
    expect(exitCode).toBe(0);
    expect(out).toContain("20000 digits to train on for 2 epochs; 10000 others to test on");
    expect(err).toMatch(/learning \[=+\] 100 %, batch 312 of 312, loss 0\.\d{3}/); // 2 × ⌊20000 / 128⌋
  });

  test("two batches are not enough: it says so, and exits with 1", () => {
    const { out, err, exitCode } = perceptron(cpu, "256", "1");
    expect(accuracyIn(out)).toBeLessThan(95);
    expect(err).toEndWith("expected an accuracy of at least 95 %\n");
    expect(exitCode).toBe(1);
  });

  test("the calls in the code paths match the two layers, all on the requested backend", () => {
    const paths = pathsIn(perceptron(cpu, "256", "1").out);
    expect(paths.filter(({ backend, reason }) => backend !== "cpu" || reason !== "preferred")).toEqual([]);
    // Each of two batches has two products forward and three backward, since the images need no gradient. The test has
    // two.
    expect(paths.find(({ operation }) => operation === "matmul")?.calls).toBe(2 * (2 + 3) + 2);
    for (const operation of ["crossEntropy", "crossEntropyGradient", "optimizerUpdate"])
      expect([operation, paths.find((path) => path.operation === operation)?.calls]).toEqual([operation, 2]);
  });
});

test("the reference backend learns the same weights", () => {
  const [ours, reference] = ["cpu", "reference"].map((name) =>
    perceptron({ ORCHARD_BACKEND: name }, "128", "1", "500"),
  );
  expect(pathsIn(reference.out).map(({ backend }) => backend)).not.toContain("cpu");
  expect(accuracyIn(reference.out)).toBeCloseTo(accuracyIn(ours.out), 0);
});

test("fewer digits than a batch are rejected", () => {
  const { err, exitCode } = perceptron({}, "127");
  expect(err).toContain("expected at least 128 digits and one epoch, got 127 and");
  expect(exitCode).toBe(1);
});
