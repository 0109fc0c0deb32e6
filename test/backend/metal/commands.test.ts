/** Commands that require the dylib, run as by a user. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { metalContext } from "../../../src/index.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const { path: folder } = testFolder("commands");

function run(...words: string[]) {
  return runWith({}, ...words);
}

function runWith(environment: Record<string, string>, ...words: string[]) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, ...words], {
    cwd: packageRoot,
    env: { ...process.env, ...environment },
  });
  return { out: stdout.toString(), err: withoutAnnouncement(stderr.toString()), exitCode };
}

test("the kernel example computes its result and prints counters", () => {
  const { out, err, exitCode } = run("examples/kernel.ts");
  expect([err, exitCode]).toEqual(["", 0]);
  expect(Number(/largest difference from float64: (\S+)/.exec(out)?.[1])).toBeLessThan(1e-5);
  if (!metalContext().isSoftware) return; // Apple's device has no counters
  expect(out).toContain("one step: 3840 threads in 18 threadgroups"); // 96 × 40 cells, 16 × 16 per threadgroup
  expect(out).toContain("4.0 written");
});

test("the kernel example explains a race and its absence", () => {
  const { out } = run("examples/kernel.ts");
  if (!metalContext().isSoftware) return expect(out).toContain("The checker is part of the software device");
  expect(out).toMatch(
    /without a barrier, under the checker: \n[\s\S]*threadgroup-race: kernel 'pair_sums'[\s\S]*\nWith the barrier/,
  );
  expect(out).toContain("With the barrier, under the checker: no findings");
});

test("the perceptron learns on Metal as on the cpu backend", () => {
  const [ours, expected] = ["metal", "cpu"].map((name) =>
    runWith({ ORCHARD_BACKEND: name }, "examples/perceptron.ts", "256", "1", "500"),
  );
  const paths = [...ours.out.matchAll(/^ {2}\w+ +(\w+) +\d+ {2}(.*)$/gm)].map(([, ...path]) => path);
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter(([backend, reason]) => backend !== "metal" || reason !== "preferred")).toEqual([]);
  const loss = ({ err }: { err: string }) => Number(/batch 2 of 2, loss (\d\.\d{3})/.exec(err)?.[1]);
  expect(loss(ours)).toBeGreaterThan(1); // ln 10 = 2.3 is the loss of random guesses
  expect(loss(ours)).toBeCloseTo(loss(expected), 2);
  expect([ours.exitCode, expected.exitCode]).toEqual([1, 1]); // two batches are not enough
});

test("metal check prints each file's diagnostics with their lines, and fails if there are any", () => {
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, `#include <metal_stdlib>\n${text}`);
    return path;
  };
  const good = file("good.metal", "kernel void k(device float* x) { x[0] = 1; }\n");
  const bad = file("bad.metal", "kernel void k(device float* x) {\n  threadgroup float* y = x;\n  y[0] = 1;\n}\n");
  const alone = run("src/cli/orchard.ts", "metal", "check", good);
  expect([alone.out, alone.exitCode]).toEqual([`${good}: no problems\n`, 0]);
  const both = run("src/cli/orchard.ts", "metal", "check", good, bad);
  expect(both.out).toMatch(
    /good\.metal: no problems\n.*bad\.metal:3:\d+: error: cannot initialize a variable of type 'threadgroup float/s,
  );
  expect(both.exitCode).toBe(1);
});
